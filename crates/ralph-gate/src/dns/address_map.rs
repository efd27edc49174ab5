//! Assigns addresses to names inside the sandbox.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use ralph_core::net::Host;

/// The maximum number of names with an address.
const MAX_NAMES: u16 = 16 * 1024;

/// Names and their addresses. When all addresses are in use, the oldest is reassigned to the newest
/// name. Connections that still use it for the old name are refused, because the name and the
/// address no longer match.
#[derive(Debug, Default)]
pub(crate) struct DnsAddressMap {
    by_name: HashMap<Host, u16>,
    by_slot: Vec<Host>,
    next: u16,
}

impl DnsAddressMap {
    /// Returns the address of a name, which is stable until it is reassigned.
    pub(crate) fn address(&mut self, host: &Host) -> Ipv4Addr {
        if let Some(&slot) = self.by_name.get(host) {
            return address_of_slot(slot);
        }
        let slot = self.next;
        self.next = (slot + 1) % MAX_NAMES;
        match self.by_slot.get_mut(usize::from(slot)) {
            Some(old) => {
                self.by_name.remove(old);
                *old = host.clone();
            }
            None => self.by_slot.push(host.clone()),
        }
        self.by_name.insert(host.clone(), slot);
        address_of_slot(slot)
    }

    /// Returns the name that an address is assigned to.
    pub(crate) fn owner(&self, address: IpAddr) -> DnsAddressOwner<'_> {
        match address.to_canonical() {
            IpAddr::V4(address) => match address.octets() {
                [127, 1, high, low] => u16::from_be_bytes([high, low])
                    .checked_sub(1)
                    .and_then(|slot| self.by_slot.get(usize::from(slot)))
                    .map_or(DnsAddressOwner::Unassigned, DnsAddressOwner::Name),
                _ => DnsAddressOwner::NotMapped,
            },
            IpAddr::V6(_) => DnsAddressOwner::NotMapped,
        }
    }
}

/// The owner of an address.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DnsAddressOwner<'a> {
    /// The address is outside the block for names; the connection itself names its target.
    NotMapped,
    /// The address is in the block for names but not assigned.
    Unassigned,
    /// The address is assigned to this name.
    Name(&'a Host),
}

fn address_of_slot(slot: u16) -> Ipv4Addr {
    // The first address of the block is skipped, because programs treat a trailing zero as a
    // network address.
    let [high, low] = (slot + 1).to_be_bytes();
    Ipv4Addr::new(127, 1, high, low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u32) -> Host {
        Host::parse(&format!("h{number}.example")).unwrap()
    }

    #[test]
    fn a_name_keeps_its_address() {
        let mut names = DnsAddressMap::default();
        let first = names.address(&host(1));
        assert_eq!(first, Ipv4Addr::new(127, 1, 0, 1));
        assert_eq!(names.address(&host(2)), Ipv4Addr::new(127, 1, 0, 2));
        assert_eq!(names.address(&host(1)), first);
        assert_eq!(names.owner(first.into()), DnsAddressOwner::Name(&host(1)));
        let unused = Ipv4Addr::new(127, 1, 0, 3);
        assert_eq!(names.owner(unused.into()), DnsAddressOwner::Unassigned);
        assert_eq!(
            names.owner(Ipv4Addr::new(127, 1, 0, 0).into()),
            DnsAddressOwner::Unassigned
        );
        assert_eq!(
            names.owner(Ipv4Addr::LOCALHOST.into()),
            DnsAddressOwner::NotMapped
        );
    }

    #[test]
    fn the_oldest_address_is_reused() {
        let mut names = DnsAddressMap::default();
        let first = names.address(&host(0));
        for number in 1..=u32::from(MAX_NAMES) {
            names.address(&host(number));
        }
        assert_eq!(
            names.owner(first.into()),
            DnsAddressOwner::Name(&host(u32::from(MAX_NAMES)))
        );
        assert_ne!(names.address(&host(0)), first);
        assert_eq!(names.by_name.len(), usize::from(MAX_NAMES));
    }
}
