import {
  Activity, AlertTriangle, ArrowRight, Ban, Bell, Bot, Check, CheckCircle2, ChevronDown, ChevronRight, CircleDashed, CircleHelp,
  CircleStop, Clock, Coins, Copy, Cpu, Download, Ellipsis, ExternalLink, FileText, Flag, GitBranch, GitMerge, GitPullRequest, HardDrive, Home,
  Keyboard, List, LoaderCircle, MessageSquare, Moon, Network, Pause, Pencil, Play, Plus, RefreshCw, RotateCw, Search, Server, Settings,
  Shield, ShieldAlert, Stethoscope, Sun, SunMoon, Trash2, X, XCircle, type LucideIcon,
} from "lucide-react";

const icons = {
  activity: Activity, alert: AlertTriangle, arrow: ArrowRight, ban: Ban, bell: Bell, agent: Bot, check: Check, success: CheckCircle2,
  down: ChevronDown, right: ChevronRight, pending: CircleDashed, question: CircleHelp, stop: CircleStop, clock: Clock, cost: Coins,
  copy: Copy, cpu: Cpu, download: Download, external: ExternalLink, file: FileText, flag: Flag, branch: GitBranch, merge: GitMerge,
  pull: GitPullRequest, disk: HardDrive, more: Ellipsis, home: Home, keyboard: Keyboard, list: List, working: LoaderCircle, message: MessageSquare,
  moon: Moon, network: Network, pause: Pause, edit: Pencil, play: Play, plus: Plus, refresh: RefreshCw, rotate: RotateCw, search: Search,
  server: Server, settings: Settings, shield: Shield, shieldAlert: ShieldAlert, doctor: Stethoscope, sun: Sun, sunMoon: SunMoon,
  trash: Trash2, close: X, failure: XCircle,
} satisfies Record<string, LucideIcon>;

export type IconName = keyof typeof icons;

/** An icon beside words; it never stands for a meaning alone. */
export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  const Picture = icons[name];
  return <Picture size={size} strokeWidth={2} aria-hidden="true" focusable="false" className={`icon icon-${name}`} />;
}
