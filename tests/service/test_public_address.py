"""Addresses of this machine and its network, in all their forms, and those of others."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.service.public_address import is_public

LOCAL_V4 = (
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.0.9"),
    *("169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.0.192", "192.0.2.1", "192.168.1.1"),
    *("198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1"),
    *("255.255.255.255", "168.63.129.16"),
)


@pytest.mark.parametrize("text", LOCAL_V4)
def test_an_address_within_a_network_is_not_public(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", LOCAL_V4)
@pytest.mark.parametrize(
    "form",
    [
        *("::ffff:{}", "::{}", "::ffff:0:{}", "64:ff9b::{}", "64:ff9b:1::{}", "fe80::5efe:{}", "2002:{hex}::1"),
        *("2001:0:{hex}::", "2001::{inverted}", "fd00::{}"),
    ],
)
def test_an_address_within_a_network_is_not_public_in_any_form_of_ipv6(text: str, form: str) -> None:
    number = int(ip_address(text))
    groups, inverted = (f"{value >> 16:x}:{value & 0xFFFF:x}" for value in (number, number ^ 0xFFFFFFFF))
    assert not is_public(ip_address(form.format(text, hex=groups, inverted=inverted)))


@pytest.mark.parametrize(
    "text",
    [
        *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "100::1"),
        *("2001:db8::1", "3fff::1", "5f00::1", "2001:10::1", "2001:20::1", "4000::1", "2606:4700::1111%1"),
    ],
)
def test_an_ipv6_address_that_is_not_anybody_s_to_reach_is_not_public(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize(
    "text",
    [
        *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.0.0.1", "128.0.0.1"),
        *("172.15.0.1", "172.32.0.1", "192.167.0.1", "198.17.0.1", "198.20.0.1", "223.255.255.255"),
        *("2606:4700::1111", "2001:4860:4860::8888", "2a00:1450::1", "64:ff9b::8.8.8.8"),
    ],
)
def test_an_address_of_the_internet_is_public(text: str) -> None:
    assert is_public(ip_address(text))


@given(st.ip_addresses(v=4))
def test_what_is_public_is_so_for_the_standard_library_too(address: object) -> None:
    address = ip_address(str(address))
    assert not is_public(address) or (address.is_global and not address.is_multicast)


@given(st.ip_addresses(v=6))
def test_what_is_public_in_ipv6_is_so_for_the_standard_library_too(address: object) -> None:
    address = ip_address(str(address))
    assert not is_public(address) or (address.is_global and not address.is_multicast)
