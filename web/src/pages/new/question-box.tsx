import type { ProblemDetails } from "../../api/problem";
import type { components } from "../../api/schema";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icon";

type Question = components["schemas"]["StartQuestion"];
type QuestionProps = { problem: ProblemDetails; onAnswer: (answer: Answer) => void };

/** The parts of a request that answer the questions of a start. */
export type Answer = { approved_proposals?: string; accept_local?: boolean; unfinished_run?: "resume" | "new" };

/** A question that the start asks, with the answers that let it continue. */
export function QuestionBox({ problem, onAnswer }: QuestionProps) {
  const question = problem.question as Question | undefined;
  return (
    <section className="attention" role="alert">
      <h2 className="row">
        <Icon name="question" />
        <span className="raw">{problem.detail}</span>
      </h2>
      {problem.hint && <p className="muted raw">{problem.hint}</p>}
      {question?.kind === "approve_proposals" && (
        <>
          <ul className="stack tight">
            {question.proposals.pending.map((proposal) => (
              <li key={`${proposal.file} ${proposal.key}`} className="raw">
                <span className="code">
                  {proposal.file}: {proposal.key} = {proposal.value}
                </span>
                <span className="muted"> — {proposal.allows}</span>
              </li>
            ))}
          </ul>
          <div>
            <Button onClick={() => onAnswer({ approved_proposals: question.digest })}>Approve exactly these proposals</Button>
          </div>
        </>
      )}
      {question?.kind === "accept_local" && (
        <div>
          <Button kind="danger" onClick={() => onAnswer({ accept_local: true })}>
            Work without isolation
          </Button>
        </div>
      )}
      {question?.kind === "unfinished_run" && (
        <div className="row wrap">
          <Button kind="primary" onClick={() => onAnswer({ unfinished_run: "resume" })}>
            Continue the unfinished run
          </Button>
          <Button onClick={() => onAnswer({ unfinished_run: "new" })}>Start a new run</Button>
        </div>
      )}
    </section>
  );
}
