//! Selects an unprivileged user of the image for commands.

use crate::available;
use crate::command::User;

/// The user of commands if the image has none.
const FALLBACK_USER: User = User {
    user: 10001,
    group: 10001,
};
/// The user in images built for ralph.
const AGENT_USER: &str = "agent";
/// The user IDs that distributions assign to login users.
const LOGIN_UIDS: std::ops::Range<u32> = 1000..60000;

/// Selects a user from the text of `/etc/passwd`: `agent`, else the first login user, else a
/// fixed ID. Never root, and never `foreign`: the user with that ID outside the container owns the
/// directory of the connection.
pub(super) fn choose_user(passwd: &str, foreign: Option<u32>) -> User {
    let users: Vec<(&str, User)> = passwd.lines().filter_map(parse_passwd_line).collect();
    let usable = |user: &User| user.user != 0 && user.group != 0 && Some(user.user) != foreign;
    let agent = users.iter().find(|(name, _)| *name == AGENT_USER);
    let login_user = users
        .iter()
        .filter(|(_, user)| LOGIN_UIDS.contains(&user.user))
        .min_by_key(|(_, user)| user.user);
    [agent, login_user]
        .into_iter()
        .flatten()
        .map(|(_, user)| *user)
        .find(usable)
        .unwrap_or(FALLBACK_USER)
}

/// Parses a line `name:password:user:group:…`.
fn parse_passwd_line(line: &str) -> Option<(&str, User)> {
    let mut fields = line.split(':');
    let name = fields.next()?;
    let user = available(fields.nth(1)?.parse())?;
    let group = available(fields.next()?.parse())?;
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
            (String::new(), None, FALLBACK_USER),
            (with(""), None, FALLBACK_USER),
            (with(node), None, user(1000, 1000)),
            (with(&format!("{node}{agent}")), None, user(1001, 100)),
            (
                with(&format!("{node}{agent}")),
                Some(1001),
                user(1000, 1000),
            ),
            (with(node), Some(1000), FALLBACK_USER),
            (with("agent:x:0:0::/:/bin/sh\n"), None, FALLBACK_USER),
            (with("agent:x:1000:0::/:/bin/sh\n"), None, FALLBACK_USER),
            (with("agent:x:broken\n"), None, FALLBACK_USER),
        ] {
            assert_eq!(choose_user(&passwd, foreign), expected, "{passwd}");
        }
    }
}
