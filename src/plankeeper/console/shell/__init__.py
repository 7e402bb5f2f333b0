"""Pages and forms as requests: routing, session, CSRF, responses, templates."""
