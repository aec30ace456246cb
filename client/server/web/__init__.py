"""The web listener: a page, the JSON API `/api/v1`, `/metrics`, and probes of health."""
