import { useState } from "react";
import { useNewShare, useRevokeShare, useSession, useShares, useSignOut } from "../../api/access";
import { base } from "../../api/base";
import { useNow } from "../../shell/now";
import { toastError } from "../../shell/toast";
import { Button } from "../../ui/button";
import { Card, Facts } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { Select, TextField } from "../../ui/field";
import { ago, clockTime, dateTime } from "../../ui/format";

const lifetimes = [10, 30, 60];

/** Who may use the server: this browser, and others by share links. */
export function Access() {
  const session = useSession();
  const signOut = useSignOut();
  const scope = session.data?.scope;
  const leave = () => signOut.mutate(undefined, { onSuccess: () => location.assign(base), onError: toastError });
  return (
    <div className="stack loose">
      <Card
        title="This browser"
        aside={
          <Button busy={signOut.isPending} onClick={leave}>
            Sign out
          </Button>
        }
      >
        {session.isError && <ErrorBox error={session.error} />}
        {session.data && (
          <Facts
            facts={[
              ["Rights", scope === "read" ? "look at everything, change nothing" : "everything"],
              ["Signed in until", session.data.expires_at ? dateTime(session.data.expires_at) : "the server stops"],
            ]}
          />
        )}
      </Card>
      {scope === "full" && <Shares />}
    </div>
  );
}

function Shares() {
  const shares = useShares();
  const create = useNewShare();
  const revoke = useRevokeShare();
  const now = useNow();
  const [minutes, setMinutes] = useState("30");
  return (
    <Card title="Share links">
      <div className="stack">
        <p className="muted">A link lets one other browser look at everything and change nothing, for a limited time. It works once.</p>
        <div className="row wrap end">
          <Select
            label="Valid for"
            value={minutes}
            onChange={(event) => setMinutes(event.target.value)}
            options={lifetimes.map((one) => ({ value: String(one), text: `${one} minutes` }))}
          />
          <Button busy={create.isPending} onClick={() => create.mutate(Number(minutes), { onError: toastError })}>
            Create a link
          </Button>
        </div>
        {create.data && (
          <TextField
            label="The new link"
            readOnly
            value={create.data.url}
            hint="Copy it now: it is not shown again."
            onFocus={(event) => event.target.select()}
          />
        )}
        {shares.isError && <ErrorBox error={shares.error} />}
        <ul className="stack" aria-label="Share links">
          {shares.data?.shares.map((share) => (
            <li key={share.id} className="row spread wrap">
              <span>
                created {ago(share.created_at, now)}, ends at {clockTime(share.expires_at)}, {share.used_at ? `used ${ago(share.used_at, now)}` : "not used yet"}
              </span>
              <Button kind="danger" busy={revoke.isPending} onClick={() => revoke.mutate(share.id, { onError: toastError })}>
                Revoke
              </Button>
            </li>
          ))}
        </ul>
      </div>
    </Card>
  );
}
