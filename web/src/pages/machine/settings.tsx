import { useState } from "react";
import { disableNotifications, enableNotifications, wantsNotifications } from "../../shell/notifications";
import { setTheme, useTheme, type Theme } from "../../shell/theme";
import { Card } from "../../ui/card";
import { Checkbox, Select } from "../../ui/field";

/** Settings of the page in this browser. */
export function Settings() {
  const theme = useTheme();
  const [notify, setNotify] = useState(wantsNotifications);
  const change = async (on: boolean) => {
    if (on) setNotify(await enableNotifications());
    else {
      disableNotifications();
      setNotify(false);
    }
  };
  return (
    <Card title="This page">
      <div className="stack">
        <Select
          label="Theme"
          value={theme}
          onChange={(event) => setTheme(event.target.value as Theme)}
          options={[
            { value: "system", text: "as the system" },
            { value: "light", text: "light" },
            { value: "dark", text: "dark" },
          ]}
        />
        <Checkbox
          label="Notify me in the background"
          hint="When a run asks, fails or is done and this tab is not in front."
          checked={notify}
          onChange={(event) => void change(event.target.checked)}
        />
      </div>
    </Card>
  );
}
