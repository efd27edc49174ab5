import { useState, type ReactNode } from "react";
import { useAnswer, useApplyDiagnosis, useCommand, useDiagnose } from "../../api/steering";
import { useAttention } from "../../api/queries";
import type { AttentionItem, Run } from "../../api/types";
import { toast, toastError } from "../../shell/toast";
import { Button } from "../../ui/button";
import { TextArea } from "../../ui/field";
import { Icon } from "../../ui/icon";
import { ContinueDialog } from "./continue-dialog";
import { Hosts } from "./hosts";

const titles: Record<AttentionItem["kind"], string> = {
  question: "The run asks you",
  test_changes: "Existing tests were changed",
  circling: "The run circles",
  budget: "A budget is used up",
  failure: "The run failed",
  broken: "Something outside of the run is broken",
  sandbox_lost: "The sandbox is gone",
  interrupted: "The run was interrupted",
  blocked_hosts: "Hosts were blocked",
  doctor_report: "The doctor has a report",
};

/** What the run needs from the user, with the commands that give it. */
export function Attention({ run }: { run: Run }) {
  const query = useAttention(run.id);
  const items = query.data?.items ?? [];
  if (items.length === 0) return null;
  return (
    <section className="attention" aria-label="What the run needs">
      {items.map((item, index) => (
        <Item key={`${item.kind} ${index}`} item={item} run={run} />
      ))}
    </section>
  );
}

function Item({ item, run }: { item: AttentionItem; run: Run }) {
  return (
    <div className="attention-item">
      <h2 className="row">
        <Icon name={item.kind === "question" ? "question" : "alert"} />
        {titles[item.kind]}
      </h2>
      <p className="raw">{item.text}</p>
      <Answers item={item} run={run} />
    </div>
  );
}

function Answers({ item, run }: { item: AttentionItem; run: Run }) {
  const command = useCommand(run.id);
  const diagnose = useDiagnose(run.id);
  const apply = useApplyDiagnosis(run.id);
  const [raise, setRaise] = useState(false);
  const names = item.answers.map((answer) => answer.command);
  const has = (name: string) => names.includes(name);
  const stop = has("stop") && (
    <Button kind="quiet" icon="stop" onClick={() => command.mutate("stop", { onError: toastError })}>
      Stop the run
    </Button>
  );
  return (
    <>
      {has("answer") && <AnswerBox run={run}>{stop}</AnswerBox>}
      {item.kind === "blocked_hosts" && <Hosts run={run} hosts={run.blocked_hosts ?? []} />}
      <div className="row wrap">
        {has("resume") && (
          <Button icon="play" busy={command.isPending} onClick={() => command.mutate("resume", { onError: toastError })}>
            {item.kind === "test_changes" ? "Approve these changes and resume" : "Resume"}
          </Button>
        )}
        {(has("continue") || has("limits")) && (
          <Button kind="primary" onClick={() => setRaise(true)}>
            Raise budgets and continue
          </Button>
        )}
        {has("diagnose") && (
          <Button icon="doctor" busy={diagnose.isPending} onClick={() => diagnose.mutate(undefined, { onError: toastError })}>
            Ask the doctor
          </Button>
        )}
        {has("apply") && (
          <Button
            icon="check"
            busy={apply.isPending}
            onClick={() => apply.mutate(undefined, { onError: toastError, onSuccess: (done) => toast(done.effect, "good") })}
          >
            Apply the report
          </Button>
        )}
        {!has("answer") && stop}
      </div>
      {raise && <ContinueDialog run={run} onClose={() => setRaise(false)} />}
    </>
  );
}

function AnswerBox({ run, children }: { run: Run; children: ReactNode }) {
  const [text, setText] = useState("");
  const answer = useAnswer(run.id);
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() !== "") answer.mutate(text, { onSuccess: () => setText(""), onError: toastError });
      }}
    >
      <TextArea
        label="Your answer"
        hint="The next prompt contains the question and your answer, and the run continues."
        value={text}
        maxLength={6000}
        onChange={(event) => setText(event.target.value)}
      />
      <div className="row wrap">
        <Button type="submit" kind="primary" busy={answer.isPending} forbidden={text.trim() === "" ? "write an answer first" : undefined}>
          Answer and continue
        </Button>
        {children}
      </div>
    </form>
  );
}
