import { useProfiles } from "../../api/queries";
import { useChangeProfile } from "../../api/steering";
import type { Run } from "../../api/types";
import { toastError } from "../../shell/toast";
import { Dialog } from "../../ui/dialog";
import { ErrorBox } from "../../ui/error-box";
import { Icon } from "../../ui/icon";
import { Badge } from "../../ui/status";

/** Chooses the model of the next iterations. */
export function ProfileDialog({ run, onClose }: { run: Run; onClose: () => void }) {
  const profiles = useProfiles();
  const change = useChangeProfile(run.id);
  return (
    <Dialog open onClose={onClose} title="Change the model" description="The model is used from the next call on.">
      {profiles.isError && <ErrorBox error={profiles.error} />}
      <div className="stack">
        {profiles.data?.profiles.map((profile) => (
          <button
            key={profile.profile}
            type="button"
            className="choice"
            aria-pressed={run.profile === profile.profile}
            onClick={() => change.mutate(profile.profile, { onSuccess: onClose, onError: toastError })}
          >
            <span className="row wrap">
              {run.profile === profile.profile && <Icon name="check" />}
              <strong>{profile.profile}</strong>
              {!profile.usable && <Badge tone="warn" text="not usable" />}
            </span>
            <span className="small muted">{profile.model}</span>
          </button>
        ))}
      </div>
    </Dialog>
  );
}
