"""The compiled request path: one Engine per worker process."""

try:
    from edgefast.core.engine import Engine, TlsContext, TlsError, use_tickets
except (ImportError, IndexError) as error:
    missing = getattr(error, "name", None)
    if missing is None or missing.startswith("edgefast"):  # no module of others
        said = "the engine is not built, or built from other sources: make build/.native"
        raise ImportError(f"{said} ({error})") from error
    raise

__all__ = ["Engine", "TlsContext", "TlsError", "use_tickets"]
