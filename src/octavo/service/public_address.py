"""Which addresses are anybody's to reach, and which only this machine's or its network's."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

Address = IPv4Address | IPv6Address

_NOT_PUBLIC: tuple[IPv4Network | IPv6Network, ...] = tuple(
    map(
        ip_network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16"),
            *("192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
            "168.63.129.16/32",  # a public one by which each of Azure's machines reaches its host
            *("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
        ),
    )
)
"""Of IANA's special-purpose address registries for IPv4, and for IPv6 those within 2000::/3; 2001::/23 has Teredo's in
it, and 2002::/16 those of 6to4, which hold any IPv4 address."""

_GLOBAL_UNICAST = IPv6Network("2000::/3")
"""All IPv6 addresses that are given out (RFC 4291), and so none that is mapped, local or multicast."""

_NAT64 = IPv6Network("64:ff9b::/96")
"""IPv4 addresses in the last 32 bits, as networks without IPv4 write them (RFC 6052)."""


def is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address):
        if address in _NAT64:
            return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
        if address not in _GLOBAL_UNICAST or address.scope_id is not None:
            return False
    return not any(address in network for network in _NOT_PUBLIC)
