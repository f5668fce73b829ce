"""The REST face: notifyd's paths, problem documents, OpenAPI."""
