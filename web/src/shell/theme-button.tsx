import { Icon } from "../ui/icon";
import { setTheme, useTheme, type Theme } from "./theme";

const next: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const words: Record<Theme, string> = { system: "as the system", light: "light", dark: "dark" };
const icons = { system: "sunMoon", light: "sun", dark: "moon" } as const;

export function ThemeButton() {
  const theme = useTheme();
  const label = `Theme: ${words[theme]}. Change to ${words[next[theme]]}`;
  return (
    <button type="button" className="icon-button" aria-label={label} title={label} onClick={() => setTheme(next[theme])}>
      <Icon name={icons[theme]} />
    </button>
  );
}
