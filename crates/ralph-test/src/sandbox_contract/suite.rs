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
        failures: Vec::new(),
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
        endings: exit_codes_are_exact commands_that_cannot_run_exit_with_126_or_127 signals_are_distinguished
            argv_needs_no_shell a_missing_program_is_an_error;
        output: streams_are_separate standard_streams_can_be_opened_again bytes_are_exact output_arrives_while_the_command_runs
            input_is_passed_through input_may_be_ignored input_ends
            input_may_arrive_later a_flood_is_counted_and_split_into_chunks
            the_last_bytes_are_never_lost;
        environment: variables_of_the_caller_are_hidden variables_are_layered home_and_tmp_are_usable;
        directories: commands_run_in_their_working_directory a_missing_directory_is_not_entered
            a_link_outside_is_not_entered directories_are_restored_after_every_command;
        killing: a_timeout_keeps_the_output a_timeout_kills_commands_that_ignore_it
            a_timeout_ends_other_sessions an_output_limit_ends_a_flood
            a_background_process_does_not_delay_the_end
            nothing_outlives_a_command dropping_ends_everything
            commands_do_not_affect_each_other;
        files: files_round_trip missing_directories_are_created appending_writes_at_the_end
            replacing_keeps_permissions a_link_inside_is_written_through
            a_directory_is_listed deleting_removes_whole_directories missing_files_are_named
            a_file_is_read_only_up_to_the_limit syncing_keeps_written_files;
        confinement: links_outside_are_not_read links_outside_are_not_written
            deleting_does_not_follow_links pipes_and_directories_are_not_files;
        lifecycle: sandboxes_are_listed_with_labels sandboxes_are_isolated
            attaching_ends_running_commands attaching_finds_only_existing_sandboxes removing_twice_is_fine
            a_removed_sandbox_is_gone;
    }
    assert!(
        suite.failures.is_empty(),
        "the provider `{}` violates {} guarantees:\n{}",
        provider.name(),
        suite.failures.len(),
        suite.failures.join("\n")
    );
}

struct ContractSuite<'a> {
    provider: &'a dyn SandboxProvider,
    failures: Vec<String>,
}

impl ContractSuite<'_> {
    async fn check(&mut self, name: &str, promise: impl AsyncFnOnce(&ContractSandbox<'_>)) {
        let fixture = ContractSandbox::new(self.provider).await;
        if let Err(panic) = catch_panic(promise(&fixture)).await {
            self.failures
                .push(format!("- {name}: {}", panic_message(&*panic)));
        }
        if let Err(error) = fixture.sandbox.remove().await {
            self.failures.push(format!("- {name}: {error}"));
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
