"""URLs that lead to places which no client may have a server reach."""

OWN_MACHINE = (
    *("http://127.0.0.1:{}/", "http://localhost:{}/", "http://LOCALHOST:{}/", "http://localhost.:{}/"),
    *("http://[::1]:{}/", "http://[::]:{}/", "http://0.0.0.0:{}/", "http://0:{}/", "http://127.1:{}/"),
    *("http://127.8.9.10:{}/", "http://127.255.255.254:{}/", "http://127.0.0.1.:{}/", "http://127.000.000.001:{}/"),
    *("http://2130706433:{}/", "http://0x7f000001:{}/", "http://0x7F.0.0.1:{}/", "http://0177.0.0.1:{}/"),
    *("http://017700000001:{}/", "http://[::ffff:127.0.0.1]:{}/", "http://[::ffff:7f00:1]:{}/"),
    *("http://[::127.0.0.1]:{}/", "http://[0:0:0:0:0:ffff:7f00:0001]:{}/", "http://[64:ff9b::7f00:1]:{}/"),
    *("http://[2002:7f00:1::]:{}/", "http://[::1%25lo]:{}/", "http://①②⑦.⓪.⓪.①:{}/", "http://127。0。0。1:{}/"),
    *("http://%31%32%37.0.0.1:{}/", "http://user@127.0.0.1:{}/", "http://user:word@localhost:{}/"),
    *("http://example.com@127.0.0.1:{}/", "http://127.0.0.1:{}\\@example.com/", "http://example.com\\@127.0.0.1:{}/"),
    *("http://127.0.0.1:{}#@example.com/", "http://127.0.0.1:{}?@example.com/", "http:\\\\127.0.0.1:{}/"),
    *("http:/127.0.0.1:{}/", "http:127.0.0.1:{}/", "//127.0.0.1:{}/", "\nhttp://127.0.0.1:{}/"),
    *("http://127.0.0.1\t:{}/", "http://127.0.0.1:{}/\x00", "https://127.0.0.1:{}/", "HTTP://127.0.0.1:{}/"),
    *("ftp://127.0.0.1:{}/", "gopher://127.0.0.1:{}/_GET", "dict://127.0.0.1:{}/", "ws://127.0.0.1:{}/"),
    *(
        "ldap://127.0.0.1:{}/",
        "jar:http://127.0.0.1:{}!/",
        "url:http://127.0.0.1:{}/",
        "file://127.0.0.1:{}/etc/passwd",
    ),
)
"""Of a server that listens on every address of this machine, with a place for its port."""

PRIVATE = (
    *("http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/", "http://[::ffff:169.254.169.254]/"),
    *("http://10.0.0.1/", "http://172.16.0.1/", "http://192.168.0.1/", "http://100.64.0.1/", "http://[fd00::1]/"),
    *("http://[fe80::1]/", "http://[::ffff:10.0.0.1]/", "http://[64:ff9b::a00:1]/", "http://[2002:a00:1::]/"),
    *("http://0.0.0.0/", "http://224.0.0.1/", "http://255.255.255.255/", "http://192.0.2.1/", "http://[ff02::1]/"),
    *("http://127.0.0.1:22/", "http://127.0.0.1:6379/", "file:///etc/passwd", "file:etc/passwd", "/etc/passwd", ""),
)
"""Other addresses that are not public, and files."""
