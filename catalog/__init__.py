"""What has a name; types; errors; settings."""
