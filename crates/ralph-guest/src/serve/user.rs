//! Whom commands run as: a user of the image without any power.

use crate::command::User;

/// Whom commands run as when the image has nobody.
const NOBODY_OF_OURS: User = User {
    user: 10001,
    group: 10001,
};
/// The user that images made for ralph have.
const AGENT: &str = "agent";
/// The numbers that distributions give to people.
const PEOPLE: std::ops::Range<u32> = 1000..60000;

/// Chooses a user from the text of `/etc/passwd`: `agent`, or else the first that is a person's, or
/// else a number that nobody has. Never root, and never `foreign`: a user outside of the container
/// with the same number owns the directory that the connection goes through.
pub(super) fn choose(passwd: &str, foreign: Option<u32>) -> User {
    let users: Vec<(&str, User)> = passwd.lines().filter_map(entry).collect();
    let usable = |user: &User| user.user != 0 && user.group != 0 && Some(user.user) != foreign;
    let agent = users.iter().find(|(name, _)| *name == AGENT);
    let person = users
        .iter()
        .filter(|(_, user)| PEOPLE.contains(&user.user))
        .min_by_key(|(_, user)| user.user);
    [agent, person]
        .into_iter()
        .flatten()
        .map(|(_, user)| *user)
        .find(usable)
        .unwrap_or(NOBODY_OF_OURS)
}

/// Reads a line `name:password:user:group:…`.
fn entry(line: &str) -> Option<(&str, User)> {
    let mut fields = line.split(':');
    let name = fields.next()?;
    let user = fields.nth(1)?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    Some((name, User { user, group }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN: &str = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n";

    #[test]
    fn the_agent_comes_first_and_root_never() {
        let with = |lines: &str| format!("{DEBIAN}{lines}");
        let user = |user, group| User { user, group };
        let node = "node:x:1000:1000::/home/node:/bin/sh\n";
        let agent = "agent:x:1001:100::/home/agent:/bin/sh\n";
        for (passwd, foreign, expected) in [
            (String::new(), None, NOBODY_OF_OURS),
            (with(""), None, NOBODY_OF_OURS),
            (with(node), None, user(1000, 1000)),
            (with(&format!("{node}{agent}")), None, user(1001, 100)),
            (
                with(&format!("{node}{agent}")),
                Some(1001),
                user(1000, 1000),
            ),
            (with(node), Some(1000), NOBODY_OF_OURS),
            (with("agent:x:0:0::/:/bin/sh\n"), None, NOBODY_OF_OURS),
            (with("agent:x:1000:0::/:/bin/sh\n"), None, NOBODY_OF_OURS),
            (with("agent:x:broken\n"), None, NOBODY_OF_OURS),
        ] {
            assert_eq!(choose(&passwd, foreign), expected, "{passwd}");
        }
    }
}
