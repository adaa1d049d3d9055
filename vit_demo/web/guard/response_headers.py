"""What a response allows the browser to do."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Scope

from vit_demo.web import settings
from vit_demo.web.guard.headers import path_of

FRAME_ANCESTORS = "'self' https://huggingface.co https://*.huggingface.co https://*.hf.space"
"""Sites that may show the page in a frame; huggingface.co shows a Space like this."""

PAGE_POLICY = (
    # Gradio needs inline scripts and eval; all scripts come from this server.
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; media-src 'self' data: blob:; connect-src 'self' data: blob:; "
    "worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'self'; "
    f"frame-ancestors {FRAME_ANCESTORS}"
)
PERMISSIONS = "camera=(self), microphone=(), geolocation=(), display-capture=(), payment=(), usb=(), serial=(), hid=()"
"""Scripts may only use the camera."""

FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"  # nothing in uploads may run


def set_headers(headers: MutableHeaders, scope: Scope) -> None:
    """Adds to the headers of a response what restricts a browser, and removes what allows too much."""
    path = path_of(scope)
    if Headers(scope=scope).get("origin") not in settings.allowed_origins():
        for name in ("access-control-allow-origin", "access-control-allow-credentials"):
            del headers[name]
    headers["x-content-type-options"] = "nosniff"
    headers["referrer-policy"] = "strict-origin-when-cross-origin"
    headers["permissions-policy"] = PERMISSIONS
    if Headers(scope=scope).get("x-forwarded-proto") == "https":  # dropped above unless a proxy is announced
        headers["strict-transport-security"] = "max-age=31536000"
    if path.rstrip("/") == "/config" or headers.get("content-type", "").startswith("text/html"):
        # Both may contain the address of the server.
        headers["cache-control"] = "private, no-cache"
    headers["content-security-policy"] = FILE_POLICY if path.startswith("/file") else PAGE_POLICY
