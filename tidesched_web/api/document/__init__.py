"""What the OpenAPI document says besides the shapes: words, scopes, refusals and examples, each from one place."""
