"""Programs that use clients which tools make of the OpenAPI document; they run in the tools' environment."""
