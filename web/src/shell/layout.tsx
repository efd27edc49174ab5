import { Link, Outlet } from "@tanstack/react-router";
import { useState } from "react";
import { Icon, type IconName } from "../ui/icon";
import { LiveBadge } from "./live-badge";
import { Palette } from "./palette";
import { ShortcutList, useShortcuts } from "./shortcuts";
import { ThemeButton } from "./theme-button";
import { useTitleBadge } from "./title";
import { Toasts } from "./toast";
import "./layout.css";

const places: { to: string; text: string; icon: IconName }[] = [
  { to: "/", text: "Runs", icon: "home" },
  { to: "/new", text: "New run", icon: "plus" },
  { to: "/cost", text: "Cost", icon: "cost" },
  { to: "/machine", text: "Machine", icon: "server" },
];

/** The frame of every page. */
export function Layout() {
  const [palette, setPalette] = useState(false);
  const [shortcuts, setShortcuts] = useState(false);
  useTitleBadge();
  useShortcuts({ openPalette: () => setPalette(true), openList: () => setShortcuts(true) });
  return (
    <div className="layout">
      <a className="skip" href="#content">
        Skip to the content
      </a>
      <nav className="sidebar" aria-label="Pages">
        <Link to="/" className="brand">
          <span className="brand-mark" aria-hidden="true">
            r
          </span>
          ralph
        </Link>
        <ul className="places">
          {places.map((place) => (
            <li key={place.to}>
              <Link to={place.to} activeOptions={{ exact: place.to === "/" }} activeProps={{ "aria-current": "page" }}>
                <Icon name={place.icon} />
                <span>{place.text}</span>
              </Link>
            </li>
          ))}
        </ul>
        <button type="button" className="sidebar-search" aria-label="Search runs and commands" onClick={() => setPalette(true)}>
          <Icon name="search" />
          <span>Search</span>
          <kbd>Ctrl K</kbd>
        </button>
        <div className="sidebar-foot">
          <LiveBadge />
          <ThemeButton />
          <button type="button" className="icon-button" aria-label="Keyboard shortcuts" onClick={() => setShortcuts(true)}>
            <Icon name="keyboard" />
          </button>
        </div>
      </nav>
      <main id="content" tabIndex={-1}>
        <Outlet />
      </main>
      <Palette open={palette} onClose={() => setPalette(false)} />
      <ShortcutList open={shortcuts} onClose={() => setShortcuts(false)} />
      <Toasts />
    </div>
  );
}
