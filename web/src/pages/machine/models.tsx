import { useModels, useTestModel } from "../../api/machine";
import { Button } from "../../ui/button";
import { Card, Empty } from "../../ui/card";
import { ErrorBox } from "../../ui/error-box";
import { duration, usd } from "../../ui/format";
import { Badge } from "../../ui/status";

/** The model profiles with their prices and keys. */
export function Models() {
  const models = useModels();
  const test = useTestModel();
  return (
    <Card title="Models">
      {models.isError && <ErrorBox error={models.error} />}
      {models.data?.profiles.length === 0 && <Empty icon="cpu" title="No profile is configured." />}
      <ul className="stack">
        {models.data?.profiles.map((profile) => (
          <li key={profile.profile} className="stack tight">
            <div className="row wrap spread">
              <span className="row wrap">
                <strong>{profile.profile}</strong>
                <span className="code muted">{profile.model}</span>
                {profile.is_default && <Badge text="default" />}
                <Badge tone={profile.usable ? "good" : "warn"} text={profile.usable ? "usable" : "not usable"} />
                <span className="small muted">{priceWords(profile.price)}</span>
              </span>
              <Button
                icon="play"
                busy={test.isPending && test.variables === profile.profile}
                forbidden={profile.usable ? undefined : (profile.problem ?? "the profile cannot be used")}
                onClick={() => test.mutate(profile.profile)}
              >
                Test
              </Button>
            </div>
            {profile.problem && <span className="small muted raw">{profile.problem}</span>}
            {test.variables === profile.profile && test.isError && <ErrorBox error={test.error} />}
            {test.variables === profile.profile && test.data && (
              <p className={`notice ${test.data.usable ? "good" : "bad"} raw`} role="status">
                {test.data.usable ? `It answered in ${duration(test.data.duration_ms / 1000)}` : (test.data.problem ?? "It did not answer as needed.")}
                {test.data.cost_usd !== null && test.data.cost_usd !== undefined && `, for ${usd(test.data.cost_usd)}`}
              </p>
            )}
          </li>
        ))}
      </ul>
    </Card>
  );
}

function priceWords(price: unknown): string {
  if (typeof price !== "object" || price === null) return "no known price";
  const { input, output } = price as { input?: unknown; output?: unknown };
  return `$${String(input)} in, $${String(output)} out per million tokens`;
}
