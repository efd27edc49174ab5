//! Every case of the rule.

use super::*;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

const HOMES: [Home; 4] = [Home::Ours, Home::Another, Home::Missing, Home::Untold];
const MAKERS: [Maker; 4] = [
    Maker::Ended,
    Maker::MayLive,
    Maker::Untold,
    Maker::Unfinished,
];
const STANDINGS: [Standing; 7] = [
    Standing::NoRun,
    Standing::Gone,
    Standing::Held,
    Standing::Unreadable,
    Standing::Ended(HOUR),
    Standing::Waiting(HOUR),
    Standing::WaitingElsewhere,
];

fn known(home: Home, maker: Maker, standing: Standing) -> Known {
    Known {
        home,
        maker,
        standing,
        age: None,
    }
}

#[test]
fn the_table_of_our_own_sandboxes() {
    use Kept::{ForALook, Held, MayBeUsed, Resumable, Unreadable};
    use Maker::{Ended as Dead, MayLive, Untold};
    use Stale::{Ended, Gone, Nobodys, Old, Unused};
    let keep = Verdict::Keep;
    let remove = Verdict::Remove;
    let person = Patience::of_a_person(None);
    let strict = Patience::of_a_person(Some(HOUR));
    let run = Patience::of_a_run();
    let cases = [
        (Standing::NoRun, Dead, person, remove(Nobodys)),
        (Standing::NoRun, MayLive, person, keep(MayBeUsed)),
        (Standing::NoRun, Untold, person, keep(MayBeUsed)),
        (Standing::Gone, Dead, person, remove(Gone)),
        (Standing::Gone, Dead, run, remove(Gone)),
        (Standing::Gone, Untold, person, remove(Gone)),
        (Standing::Gone, MayLive, strict, keep(MayBeUsed)),
        (Standing::Held, Dead, strict, keep(Held)),
        (Standing::Held, Untold, run, keep(Held)),
        (Standing::Unreadable, Dead, strict, keep(Unreadable)),
        (Standing::Ended(Duration::ZERO), Dead, person, remove(Ended)),
        (Standing::Ended(HOUR), MayLive, person, remove(Ended)),
        (Standing::Ended(HOUR), Dead, run, keep(ForALook)),
        (Standing::Ended(DAY), Dead, run, remove(Ended)),
        (Standing::Waiting(DAY), Dead, person, keep(Resumable)),
        (Standing::Waiting(DAY), Dead, run, keep(Resumable)),
        (Standing::Waiting(HOUR / 2), Dead, strict, keep(Resumable)),
        (Standing::Waiting(HOUR), Dead, strict, remove(Old)),
        (Standing::WaitingElsewhere, Dead, run, remove(Unused)),
    ];
    for (standing, maker, patience, expected) in cases {
        let verdict = judge(&known(Home::Ours, maker, standing), &patience);
        assert_eq!(verdict, expected, "{standing:?} {maker:?} {patience:?}");
    }
}

#[test]
fn a_sandbox_without_a_run_or_a_maker_is_nobodys_after_an_hour() {
    for (age, expected) in [
        (None, Verdict::Keep(Kept::MayBeUsed)),
        (Some(HOUR / 2), Verdict::Keep(Kept::MayBeUsed)),
        (Some(HOUR), Verdict::Remove(Stale::Nobodys)),
    ] {
        let known = Known {
            age,
            ..known(Home::Ours, Maker::Untold, Standing::NoRun)
        };
        let verdict = judge(&known, &Patience::of_a_run());
        assert_eq!(verdict, expected, "{age:?}");
    }
}

/// Creating a sandbox takes milliseconds, so one without a record is soon known to be abandoned.
#[test]
fn an_unfinished_sandbox_is_removed_after_a_minute() {
    let minute = Duration::from_mins(1);
    for (age, standing, expected) in [
        (
            Some(minute / 2),
            Standing::NoRun,
            Verdict::Keep(Kept::MayBeUsed),
        ),
        (
            Some(minute),
            Standing::NoRun,
            Verdict::Remove(Stale::Unfinished),
        ),
        (None, Standing::NoRun, Verdict::Remove(Stale::Unfinished)),
        (None, Standing::Gone, Verdict::Remove(Stale::Gone)),
        (Some(minute), Standing::Held, Verdict::Keep(Kept::Held)),
    ] {
        let known = Known {
            age,
            ..known(Home::Ours, Maker::Unfinished, standing)
        };
        let verdict = judge(&known, &Patience::of_a_run());
        assert_eq!(verdict, expected, "{age:?} {standing:?}");
    }
}

/// Whatever else is known: what is not ours goes only if its directory and its maker are gone.
#[test]
fn what_belongs_to_others_stays() {
    let strict = Patience::of_a_person(Some(Duration::ZERO));
    for (maker, standing) in MAKERS
        .into_iter()
        .flat_map(|maker| STANDINGS.map(|standing| (maker, standing)))
    {
        for home in HOMES {
            let expected = match (home, maker) {
                (Home::Ours, _) => continue,
                (Home::Another, _) => Verdict::Keep(Kept::Another),
                (Home::Untold, _) => Verdict::Keep(Kept::Untold),
                (Home::Missing, Maker::Ended) => Verdict::Remove(Stale::Homeless),
                (Home::Missing, _) => Verdict::Keep(Kept::MayBeUsed),
            };
            let verdict = judge(&known(home, maker, standing), &strict);
            assert_eq!(verdict, expected, "{home:?} {maker:?} {standing:?}");
        }
    }
}

/// No patience is so short that a run loses the sandbox in which a process works.
#[test]
fn a_live_run_keeps_its_sandbox() {
    let patiences = [
        Patience::of_a_person(None),
        Patience::of_a_person(Some(Duration::ZERO)),
        Patience::of_a_run(),
    ];
    for patience in patiences {
        for (home, maker) in HOMES
            .into_iter()
            .flat_map(|home| MAKERS.map(|maker| (home, maker)))
            .filter(|place| *place != (Home::Missing, Maker::Ended))
        {
            let verdict = judge(&known(home, maker, Standing::Held), &patience);
            assert!(matches!(verdict, Verdict::Keep(_)), "{home:?} {maker:?}");
        }
    }
}
