"""The limits that ``SECURITY.md`` and ``docs/api.md`` tell are those of the code."""

from pathlib import Path

import pytest

from vit_demo.defaults import (
    DEFAULT_METHOD,
    DIGITS_PRESET,
    HOST,
    MAX_PICTURE_BYTES,
    MAX_TAUGHT_CLASSES,
    MAX_TAUGHT_PICTURES,
    MAX_VISITOR_WORDS,
    PHOTOS_PRESET,
    PORT,
    WORDS_PRESET,
)
from vit_demo.features.kmeans import MAX_SEGMENTS, MIN_SEGMENTS
from vit_demo.images import reading
from vit_demo.service import job_limits
from vit_demo.web import server
from vit_demo.web.api import mcp
from vit_demo.web.guard import bodies, event_checks, log, protocol, security, uploads, visitor
from vit_demo.web.requests import teaching
from vit_demo.weights import preset, taught_heads
from vit_demo.words import texts

ROOT = Path(__file__).parent.parent
KB, MB, GB = 1000, 1_000_000, 1_000_000_000

TOLD = {
    "SECURITY.md": [
        f"A file is deleted an hour after its last use, within seconds if the folder exceeds "
        f"{uploads.UPLOAD_FOLDER_BYTES // GB} GB, half of what its disk has for it or "
        f"{uploads.UPLOAD_FOLDER_FILES:,} files",
        f"| {job_limits.GRACE:.0f} s after the page last asked for it, about 15 s after an API caller left, after "
        f"{job_limits.JOB_SECONDS / 60:.0f} minutes in any case |",
        f"| {event_checks.MAX_EVENTS_OF_ONE}; {security.MAX_REQUESTS_OF_ONE}, or {security.MAX_REQUESTS_WHEN_FULL} "
        f"once {security.MAX_REQUESTS} are under way in all |",
        f"| {security.REQUESTS_PER_SECOND} requests with a body, {security.BODY_BYTES_PER_SECOND // MB} MB of bodies "
        f"({security.BODY_BYTES_AT_ONCE // MB} MB at once), live requests of {security.LIVE_BYTES_PER_SECOND // KB} "
        f"kB, at least {security.LIVE_DRAWING_BYTES // KB} kB each, what is rendered, as the page and previews of "
        f"drawings, made anew twice, {security.FILES_PER_SECOND} other files |",
        f"(a file {security.FILES_WAIT_SECONDS:.0f} s, a live one {security.LIVE_WAIT_SECONDS} s) is refused after "
        f"{security.REFUSED_SECONDS:.0f} s",
        f"| {MAX_TAUGHT_CLASSES} from {MAX_TAUGHT_PICTURES} pictures a request; what the head reads of "
        f"{MAX_TAUGHT_PICTURES} pictures of an address, {teaching.MAX_TOKENS:,} in all, an hour; a link of "
        f"{taught_heads.MAX_LINK >> 10} kB |",
        f"| {bodies.MAX_EVENT_BYTES // MB} MB, {bodies.MAX_EVENT_VALUES:,} values, counted before they are parsed, "
        f"{bodies.MAX_DEPTH} within each other |",
        f"| {MAX_VISITOR_WORDS}, of {texts.MAX_CHARACTERS} characters each |",
        f"| {bodies.LEAST_BYTES_PER_SECOND // KB} kB per second after a pause of at most {bodies.PAUSE_SECONDS:.0f} s, "
        f"and within {bodies.BODY_SECONDS:.0f} s",
        f"| {security.MAX_LIVE_BYTES // KB} kB, one that waits for each page; a frame of a camera: JPEG of "
        f"{3 * reading.MAX_FRAME_CHARACTERS // 4 // KB} kB, {' x '.join(map(str, reading.MAX_FRAME_SIDES))} pixels, "
        f"{reading.MAX_FRAME_SEGMENTS} segments and {reading.MAX_FRAME_SCANS} scans",
        f"| {bodies.MAX_UNFINISHED_BYTES // MB} MB; beyond, the oldest",
        f"| {protocol.MAX_CONNECTIONS}, or half of the descriptors that `ulimit -n` leaves, "
        f"{protocol.MAX_CONNECTIONS_OF_ONE} from one address",
        f"who holds more than {protocol.FEW_CONNECTIONS}; {protocol.READ_BYTES // KB} kB are read at once |",
        f"nothing is awaited | {protocol.IDLE_SECONDS:.0f} s |",
        f"| {protocol.READER_BYTES // KB} kB, or its rest, must be read every {protocol.READER_SECONDS:.0f} s; "
        f"{protocol.MAX_UNREAD_BYTES // MB} MB unread in all",
        f"| {security.MAX_UPLOADS_OF_ONE} of one address under way; one file of at most {MAX_PICTURE_BYTES // MB} MB",
        f"{security.UPLOAD_QUOTA_BYTES // MB} MB at once and as much again per hour, each file counting "
        f"{security.UPLOAD_FILE_BYTES // KB} kB more |",
        f"| {visitor.MAX_UNCOLLECTED}, for {visitor.STREAM_SECONDS:.0f} s each; beyond, the oldest is dropped |",
        f"| {event_checks.MAX_MESSAGES} uncollected messages, one stream",
        f"{mcp.MAX_TOOL_CALLS} at once ({mcp.MAX_FIRST_CALLS} with the first ones of newcomers), "
        f"{mcp.MAX_TOOL_CALLS_OF_ONE} from one address",
        f"one line of at most {log.MAX_LINE_LENGTH} characters",
        f"| `{HOST}`, {PORT} or the next free of {server.NUM_PORTS} |",
    ],
    "docs/api.md": [
        f"with classes if at most {preset.MAX_FEW_LABELS} |",
        f"of at most {reading.MAX_DRAWING_CHARACTERS // MB} MB; other URLs are not fetched",
        f"`{DIGITS_PRESET}` for a drawing, else `{PHOTOS_PRESET}` |",
        f"at most {MAX_VISITOR_WORDS}; `{WORDS_PRESET}` without a `preset` |",
        f"`{DEFAULT_METHOD}` in `/explain_image` and `/faithfulness` |",
        f"the number of segments, {MIN_SEGMENTS} to {MAX_SEGMENTS} |",
        f"2 to {MAX_TAUGHT_CLASSES} classes with at most {MAX_TAUGHT_PICTURES} pictures",
        f"One address may have {event_checks.MAX_EVENTS_OF_ONE} unfinished calls",
        f"http://{HOST}:{PORT}/gradio_api/mcp/",
    ],
}


@pytest.mark.parametrize(("document", "sentence"), [(name, one) for name, all_ in TOLD.items() for one in all_])
def test_a_number_is_that_of_the_code(document, sentence):
    assert sentence in " ".join((ROOT / document).read_text(encoding="utf-8").split())
