"""Topics of MQTT brokers: messages are acknowledged once a checkpoint has their rows."""
