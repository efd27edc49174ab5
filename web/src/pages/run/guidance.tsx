import { useState } from "react";
import { useGuardrails, useMessages, useNotes } from "../../api/queries";
import { useAddGuardrail, useAddNote, useSendMessage } from "../../api/steering";
import type { Run } from "../../api/types";
import { toast, toastError } from "../../shell/toast";
import { Button } from "../../ui/button";
import { Card } from "../../ui/card";
import { Select, TextArea, TextField } from "../../ui/field";
import { Badge } from "../../ui/status";
import { Forbidden, forbidden } from "./forbidden";
import { GuidanceEntries } from "./guidance-entries";

/** What you tell the model or agent: guardrails for every prompt, notes for the next ones, messages at once. */
export default function Guidance({ run }: { run: Run }) {
  return (
    <div className="columns">
      <div className="stack loose">
        <Guardrails run={run} />
        <Notes run={run} />
      </div>
      <Messages run={run} />
    </div>
  );
}

function Guardrails({ run }: { run: Run }) {
  const guardrails = useGuardrails(run.id);
  const add = useAddGuardrail(run.id);
  const empty = { name: "", trigger: "", instruction: "", evidence: "" };
  const [form, setForm] = useState(empty);
  const set = (name: keyof typeof empty) => (event: { target: { value: string } }) => setForm({ ...form, [name]: event.target.value });
  const isComplete = form.name.trim() && form.trigger.trim() && form.instruction.trim();
  const why = forbidden(run, "guardrail") ?? (isComplete ? undefined : "fill in name, situation and instruction");
  const submit = () =>
    add.mutate(form, {
      onError: toastError,
      onSuccess: (done) => {
        setForm(empty);
        toast(done.effect, "good");
      },
    });
  return (
    <Card title="Guardrails">
      <div className="stack">
        <GuidanceEntries text={guardrails.data?.text} empty="No guardrail yet." />
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            if (why === undefined) submit();
          }}
        >
          <TextField label="Name" value={form.name} onChange={set("name")} placeholder="Keep the public names" />
          <TextField label="Situation" value={form.trigger} onChange={set("trigger")} placeholder="When renaming a function" />
          <TextArea label="Instruction" value={form.instruction} onChange={set("instruction")} placeholder="Leave the old name as an alias" />
          <TextField label="Evidence (optional)" value={form.evidence} onChange={set("evidence")} />
          <div>
            <Button type="submit" kind="primary" busy={add.isPending} forbidden={why}>
              Add the guardrail
            </Button>
          </div>
          <Forbidden run={run} command="guardrail" />
        </form>
      </div>
    </Card>
  );
}

const kinds = [
  { value: "clarify", text: "A clarification" },
  { value: "file", text: "A hint at a file" },
  { value: "decision", text: "A decision" },
] as const;

function Notes({ run }: { run: Run }) {
  const notes = useNotes(run.id);
  const add = useAddNote(run.id);
  const [kind, setKind] = useState<(typeof kinds)[number]["value"]>("clarify");
  const [text, setText] = useState("");
  const why = forbidden(run, "note") ?? (text.trim() ? undefined : "write a note first");
  return (
    <Card title="Notes">
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (why !== undefined) return;
          add.mutate({ kind, text }, { onError: toastError, onSuccess: (done) => {
            setText("");
            toast(done.effect, "good");
          } });
        }}
      >
        <GuidanceEntries text={notes.data?.text} empty="No note yet." />
        <Select label="Kind" value={kind} onChange={(event) => setKind(event.target.value as typeof kind)} options={[...kinds]} />
        <TextArea label="Note" value={text} onChange={(event) => setText(event.target.value)} hint="It is in the prompt of the next iterations." />
        <div>
          <Button type="submit" busy={add.isPending} forbidden={why}>
            Add the note
          </Button>
        </div>
        <Forbidden run={run} command="note" />
      </form>
    </Card>
  );
}

const states = {
  queued: { text: "waits", tone: "calm" },
  delivered: { text: "delivered", tone: "busy" },
  acknowledged: { text: "read", tone: "good" },
} as const;

function Messages({ run }: { run: Run }) {
  const messages = useMessages(run.id);
  const send = useSendMessage(run.id);
  const [text, setText] = useState("");
  const why = forbidden(run, "message") ?? (text.trim() ? undefined : "write a message first");
  return (
    <Card title="Messages">
      <div className="stack">
        <ul className="stack">
          {messages.data?.messages.map((message) => (
            <li key={message.id} className="stack tight">
              <span className="raw">{message.text}</span>
              <span>
                <Badge {...states[message.state]} />
              </span>
            </li>
          ))}
        </ul>
        {messages.data?.messages.length === 0 && <p className="muted">No message yet.</p>}
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            if (why !== undefined) return;
            send.mutate(text, { onError: toastError, onSuccess: () => setText("") });
          }}
        >
          <TextArea
            label="Message"
            value={text}
            onChange={(event) => setText(event.target.value)}
            hint={run.agent ? "A running agent reads it at once if it can." : "It is in the next prompt."}
          />
          <div>
            <Button
              type="submit"
              icon="message"
              busy={send.isPending}
              forbidden={why}
            >
              Send
            </Button>
          </div>
          <Forbidden run={run} command="message" />
        </form>
      </div>
    </Card>
  );
}
