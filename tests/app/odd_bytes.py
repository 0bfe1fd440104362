"""Headers that servers and we look at, and bytes and words for them that nobody expects."""

from hypothesis import strategies as st

HEADERS = [
    *("host", "origin", "referer", "user-agent", "accept", "accept-language", "accept-encoding", "cookie"),
    *("authorization", "content-type", "content-length", "x-request-id", "x-csrf-token", "x-forwarded-for"),
    *(
        "x-forwarded-proto",
        "x-forwarded-host",
        "forwarded",
        "hx-request",
        "hx-target",
        "sec-fetch-site",
        "range",
    ),
    *("if-none-match", "if-modified-since", "if-range", "expect", "te", "idempotency-key"),
]
ODD_HEADERS = [
    *(b"http://[::1", b"http://[", b"null", b"//", b"[::1]:9999999", b"::1", b"a:b:c", b"host:port", b"a b"),
    *(
        b"",
        b" ",
        b";;;",
        b",,,",
        b"=;=",
        b"\\",
        b'"',
        b"%",
        b"%00",
        b"\x00",
        b"\x1b[31m",
        b"\xff\xfe",
        b"\xe2\x80\xae",
    ),
    *(
        b"bytes=0-",
        b"bytes=9-1,,-",
        b"bytes=0-0,0-0,-1",
        b"*",
        b"*/*;q=nan",
        b"de;q=1e99999",
        b"de;q=-",
        b'W/"',
        b'"*"',
    ),
    *(
        b"-1",
        b"+5",
        b"1e3",
        b"9" * 30,
        b"9" * 5000,
        b"Bearer",
        b"Bearer \xff",
        b"Basic eA==",
        b"bearer " + b"x" * 9000,
    ),
    *(b'clarinet="\\000"', b"clarinet=\xff; language=\xff", b"__Host-clarinet=", b"language=de=de"),
    *(
        b"multipart/form-data",
        b"multipart/form-data; boundary=",
        b"multipart/form-data; boundary=" + b"x" * 300,
    ),
    *(
        b"multipart/form-data; boundary=x; charset=" + charset
        for charset in (
            *(
                b"utf-7",
                b"idna",
                b"undefined",
                b"punycode",
                b"unicode_escape",
                b"raw_unicode_escape",
                b"utf-16",
            ),
            *(b"rot13", b"zip", b"none", b"", b"\x00", b"\xff", b'"utf-7"', b"UTF-8"),
        )
    ),
    *(
        b"application/json; charset=utf-16",
        b"application/x-www-form-urlencoded; charset=utf-7",
        b"text/plain",
    ),
]
HOSTILE = [
    "\0",
    "\x1b[2J",
    "\u202e",
    "\u2066",
    "\u200b",
    "\ufeff",
    "\x7f",
    "\ud800",
    "\udcff",
    "\r\n",
    "\u2028",
]
coins = st.booleans()
values = st.one_of(st.sampled_from(ODD_HEADERS), st.binary(max_size=40))
texts = st.one_of(
    st.sampled_from(
        [*HOSTILE, *("a" + bad + "b" for bad in HOSTILE), "x" * 5000, "\U0010ffff", "9" * 5000, "-1", "%00"]
    ),
    st.text(st.characters(), max_size=20),
)
