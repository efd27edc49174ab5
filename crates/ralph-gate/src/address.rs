//! Decides which addresses the gate may connect to: public addresses that do not belong to this
//! machine, and addresses that the configuration names explicitly.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ralph_core::net::{AllowlistEntry, Endpoint, Host};

/// The addresses that the gate connects to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reachable {
    exceptions: BTreeSet<SocketAddr>,
    own: OwnAddresses,
}

/// The reason the gate refuses to connect to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressRefusal {
    /// The address is private, loopback, link-local or otherwise special.
    NotPublic,
    /// The address belongs to an interface of this machine. Connecting to it would reach services
    /// that listen on all addresses from behind the firewall.
    OwnAddress,
}

impl fmt::Display for AddressRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotPublic => "not a public address",
            Self::OwnAddress => "an address of this machine",
        })
    }
}

/// The addresses of this machine's interfaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum OwnAddresses {
    /// The addresses that the system reports at the time of the check.
    #[default]
    Interfaces,
    #[cfg(test)]
    Fixed(Vec<IpAddr>),
}

impl OwnAddresses {
    /// Returns whether an address belongs to this machine, directly or embedded in another address.
    /// If the system does not list its addresses, every address counts as its own.
    fn contains(&self, address: IpAddr) -> bool {
        let address = unwrap_embedded(address);
        match self {
            Self::Interfaces => if_addrs::get_if_addrs().map_or(true, |interfaces| {
                let mut own = interfaces.iter().map(if_addrs::Interface::ip);
                own.any(|own| own.to_canonical() == address)
            }),
            #[cfg(test)]
            Self::Fixed(own) => own.contains(&address),
        }
    }
}

impl Reachable {
    /// Allows public addresses only.
    pub fn public() -> Self {
        Self::default()
    }

    /// Also allows this address, even if it is not public: for example a model server on this
    /// machine or a registry on the local network.
    #[must_use]
    pub fn with_address(mut self, address: SocketAddr) -> Self {
        self.exceptions.insert(address);
        self
    }

    /// Treats these as the only addresses of the machine.
    #[cfg(test)]
    pub(crate) fn with_own_addresses(own: &[&str]) -> Self {
        let own = own.iter().map(|address| address.parse().unwrap());
        Self {
            own: OwnAddresses::Fixed(own.collect()),
            ..Self::default()
        }
    }

    /// Returns whether the gate may connect to an address.
    pub fn covers(&self, address: SocketAddr) -> bool {
        self.refusal(address).is_none()
    }

    /// Returns the reason the gate must not connect to an address, if there is one.
    pub(crate) fn refusal(&self, address: SocketAddr) -> Option<AddressRefusal> {
        if self.exceptions.contains(&address) {
            None
        } else if !is_public(address.ip()) {
            Some(AddressRefusal::NotPublic)
        } else if self.own.contains(address.ip()) {
            Some(AddressRefusal::OwnAddress)
        } else {
            None
        }
    }

    /// Returns the reason the gate must not connect to the address of an allowlist entry, unless the
    /// entry covers an exception.
    pub(crate) fn refusal_of_entry(&self, entry: &AllowlistEntry) -> Option<AddressRefusal> {
        let address = entry.host().address()?;
        let mut exceptions = self.exceptions.iter();
        let is_exception = exceptions.any(|address| {
            entry.covers(&Endpoint {
                host: Host::from(address.ip()),
                port: address.port(),
            })
        });
        if is_exception {
            return None;
        }
        self.refusal(SocketAddr::new(address, 0))
    }
}

/// IPv4 blocks outside the public internet: address and prefix length.
const SPECIAL_V4_BLOCKS: [([u8; 4], u32); 17] = [
    ([0, 0, 0, 0], 8),          // this network
    ([10, 0, 0, 0], 8),         // private
    ([100, 64, 0, 0], 10),      // carrier-grade NAT
    ([127, 0, 0, 0], 8),        // loopback
    ([168, 63, 129, 16], 32),   // Azure platform services, outside the reserved blocks
    ([169, 254, 0, 0], 16),     // link-local, cloud metadata services
    ([172, 16, 0, 0], 12),      // private
    ([192, 0, 0, 0], 24),       // protocol assignments
    ([192, 0, 2, 0], 24),       // documentation
    ([192, 88, 99, 0], 24),     // 6to4 relays
    ([192, 168, 0, 0], 16),     // private
    ([198, 18, 0, 0], 15),      // benchmarks
    ([198, 51, 100, 0], 24),    // documentation
    ([203, 0, 113, 0], 24),     // documentation
    ([224, 0, 0, 0], 4),        // multicast
    ([240, 0, 0, 0], 4),        // reserved
    ([255, 255, 255, 255], 32), // broadcast
];

/// IPv6 blocks inside the public range that are not public.
const SPECIAL_V6_BLOCKS: [(Ipv6Addr, u32); 3] = [
    // Protocol assignments: Teredo, benchmarks, ORCHID.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    // Documentation.
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Returns whether an address, or the address embedded in it, belongs to the public internet.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded_v4(address) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = u32::from(address);
    !SPECIAL_V4_BLOCKS.iter().any(|(block, length)| {
        let mask = u32::MAX << (32 - length);
        bits & mask == u32::from(Ipv4Addr::from(*block))
    })
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let bits = u128::from(address);
    // All globally allocated addresses are in 2000::/3.
    bits >> 125 == 0b001
        && !SPECIAL_V6_BLOCKS.iter().any(|(block, length)| {
            let mask = u128::MAX << (128 - length);
            bits & mask == u128::from(*block)
        })
}

/// Returns the address embedded in another one, or the address itself.
fn unwrap_embedded(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => embedded_v4(address).map_or(IpAddr::V6(address), IpAddr::V4),
        address @ IpAddr::V4(_) => address,
    }
}

/// Returns the IPv4 address embedded in a 6to4 (`2002::/16`) or NAT64 (`64:ff9b::/96`) address.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let parts = address.segments();
    let pair = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match parts {
        [0x2002, high, low, ..] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(pair(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_is_public_outside_special_blocks() {
        check(&[
            ("93.184.216.34", true),
            ("1.1.1.1", true),
            ("172.15.255.255", true),
            ("172.32.0.0", true),
            ("100.63.255.255", true),
            ("100.128.0.0", true),
            ("223.255.255.255", true),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("10.0.0.1", false),
            ("100.64.0.1", false),
            ("100.100.100.200", false),
            ("127.0.0.1", false),
            ("127.1.2.3", false),
            ("168.63.129.16", false),
            ("169.254.169.254", false),
            ("169.254.170.2", false),
            ("172.16.0.1", false),
            ("172.17.0.1", false),
            ("172.31.255.255", false),
            ("192.0.0.1", false),
            ("192.0.2.1", false),
            ("192.88.99.1", false),
            ("192.168.1.1", false),
            ("198.18.0.1", false),
            ("198.19.255.255", false),
            ("198.51.100.1", false),
            ("203.0.113.1", false),
            ("224.0.0.1", false),
            ("239.255.255.255", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
        ]);
    }

    #[test]
    fn ipv6_is_public_in_allocated_blocks_without_embedded_addresses() {
        check(&[
            ("2606:4700::1111", true),
            ("2a00:1450:4001::1", true),
            ("::", false),
            ("::1", false),
            ("::127.0.0.1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:10.0.0.1", false),
            ("::ffff:93.184.216.34", true),
            ("::ffff:0:127.0.0.1", false),
            ("64:ff9b::10.0.0.1", false),
            ("64:ff9b::169.254.169.254", false),
            ("64:ff9b::93.184.216.34", true),
            ("64:ff9b:1::93.184.216.34", false),
            ("100::1", false),
            ("2001::1", false),
            ("2001:2::1", false),
            ("2001:10::1", false),
            ("2001:db8::1", false),
            ("2002:7f00:1::", false),
            ("2002:a00:1::1", false),
            ("2002:c0a8:101::1", false),
            ("2002:5db8:d822::1", true),
            ("3fff::1", false),
            ("5f00::1", false),
            ("fc00::1", false),
            ("fd00:ec2::254", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ]);
    }

    fn check(table: &[(&str, bool)]) {
        for (text, public) in table {
            assert_eq!(is_public(text.parse().unwrap()), *public, "{text}");
        }
    }

    #[test]
    fn explicitly_allowed_addresses_are_reachable() {
        let address: SocketAddr = "127.0.0.1:4000".parse().unwrap();
        let reachable = Reachable::public().with_address(address);
        assert!(reachable.covers(address));
        assert!(!reachable.covers("127.0.0.1:4001".parse().unwrap()));
        assert!(!Reachable::public().covers(address));
        assert!(Reachable::public().covers("1.1.1.1:443".parse().unwrap()));
    }

    #[test]
    fn own_addresses_are_refused_in_every_form() {
        let reachable = Reachable::with_own_addresses(&["93.184.216.34", "2606:4700::1111"]);
        for (address, refusal) in [
            ("93.184.216.34:443", Some(AddressRefusal::OwnAddress)),
            (
                "[::ffff:93.184.216.34]:80",
                Some(AddressRefusal::OwnAddress),
            ),
            (
                "[64:ff9b::93.184.216.34]:80",
                Some(AddressRefusal::OwnAddress),
            ),
            ("[2002:5db8:d822::1]:80", Some(AddressRefusal::OwnAddress)),
            ("[2606:4700::1111]:443", Some(AddressRefusal::OwnAddress)),
            ("10.0.0.1:443", Some(AddressRefusal::NotPublic)),
            ("93.184.216.35:443", None),
            ("[2606:4700::1112]:443", None),
        ] {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(reachable.refusal(address), refusal, "{address}");
        }
        let named = "93.184.216.34:4000".parse().unwrap();
        assert!(
            reachable.with_address(named).covers(named),
            "it is explicitly allowed"
        );
    }

    #[test]
    fn own_addresses_are_read_from_the_interfaces() {
        let own = OwnAddresses::default();
        assert!(own.contains("127.0.0.1".parse().unwrap()));
        assert!(own.contains("::ffff:127.0.0.1".parse().unwrap()));
        assert!(!own.contains("93.184.216.34".parse().unwrap()));
    }

    #[test]
    fn allowlist_entries_for_unreachable_addresses_are_refused() {
        let reachable = Reachable::public().with_address("127.0.0.1:4000".parse().unwrap());
        for (entry, expected) in [
            ("1.1.1.1", true),
            ("[2606:4700::1111]:8443", true),
            ("127.0.0.1:4000", true),
            ("127.0.0.1:4001", false),
            ("127.0.0.1", false),
            ("10.0.0.1", false),
            ("[::1]", false),
        ] {
            let parsed = AllowlistEntry::parse(entry).unwrap();
            assert_eq!(
                reachable.refusal_of_entry(&parsed).is_none(),
                expected,
                "{entry}"
            );
        }
    }
}
