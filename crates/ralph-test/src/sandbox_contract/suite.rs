//! Runs all checks and reports the failures.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use ralph_core::ports::SandboxProvider;

use super::contract_sandbox::ContractSandbox;
use super::{confinement, directories, endings, environment, files, killing, lifecycle, output};

/// Checks a provider against the whole contract, each guarantee in its own sandbox.
///
/// # Panics
///
/// Panics at the end if checks failed, with the name and message of each.
pub async fn sandbox_contract(provider: &dyn SandboxProvider) {
    let mut suite = ContractSuite {
        provider,
        broken: Vec::new(),
    };
    macro_rules! promises {
        ($($topic:ident: $($promise:ident)+;)+) => {
            $($(suite.check(
                concat!(stringify!($topic), "::", stringify!($promise)),
                $topic::$promise,
            ).await;)+)+
        };
    }
    promises! {
        endings: exit_codes_are_exact what_cannot_run_is_126_or_127 signals_are_told_apart
            argv_needs_no_shell a_missing_program_is_an_error;
        output: streams_are_separate standard_streams_can_be_opened_again bytes_are_exact output_comes_while_the_command_runs
            input_comes_back input_may_be_ignored input_ends
            input_may_come_later a_flood_is_counted_and_cut_in_pieces
            the_last_bytes_are_never_lost;
        environment: nothing_of_the_caller_is_seen variables_are_layered home_and_tmp_are_usable;
        directories: commands_run_where_they_are_told a_missing_directory_is_not_entered
            a_link_outside_is_not_entered the_repository_is_a_directory_whatever_happens;
        killing: a_timeout_keeps_what_was_printed a_timeout_ends_what_ignores_it
            a_timeout_ends_other_sessions an_output_limit_ends_a_flood
            a_background_process_does_not_hold_a_command
            nothing_outlives_a_command dropping_ends_everything
            commands_leave_each_other_alone;
        files: bytes_come_back missing_directories_are_made appending_puts_at_the_end
            replacing_keeps_permissions a_link_inside_is_written_through
            a_directory_is_listed deleting_takes_whole_directories missing_files_are_named
            a_file_is_read_only_up_to_the_limit syncing_keeps_what_was_written;
        confinement: links_outside_are_not_read links_outside_are_not_written
            deleting_does_not_follow_links pipes_and_directories_are_no_files;
        lifecycle: sandboxes_are_listed_with_labels sandboxes_are_apart
            attaching_ends_what_runs attaching_finds_only_what_exists removing_twice_is_fine
            a_removed_sandbox_is_gone;
    }
    assert!(
        suite.broken.is_empty(),
        "the provider `{}` violates {} guarantees:\n{}",
        provider.name(),
        suite.broken.len(),
        suite.broken.join("\n")
    );
}

struct ContractSuite<'a> {
    provider: &'a dyn SandboxProvider,
    broken: Vec<String>,
}

impl ContractSuite<'_> {
    async fn check(&mut self, name: &str, promise: impl AsyncFnOnce(&ContractSandbox<'_>)) {
        let ground = ContractSandbox::new(self.provider).await;
        if let Err(panic) = catch_panic(promise(&ground)).await {
            self.broken
                .push(format!("- {name}: {}", panic_message(&*panic)));
        }
        if let Err(error) = ground.sandbox.remove().await {
            self.broken.push(format!("- {name}: {error}"));
        }
    }
}

/// Runs a future to completion and catches its panic.
async fn catch_panic(future: impl Future<Output = ()>) -> Result<(), Box<dyn Any + Send>> {
    let mut future = pin!(future);
    poll_fn(
        |context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(())) => Poll::Ready(Ok(())),
            Err(panic) => Poll::Ready(Err(panic)),
        },
    )
    .await
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("panicked")
}
