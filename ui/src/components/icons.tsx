export {
  ArrowDown as ArrowDownIcon,
  ArrowUp as SendIcon,
  Check as CheckIcon,
  ChevronDown as ChevronDownIcon,
  ChevronLeft as BackIcon,
  ChevronRight as ChevronRightIcon,
  CircleAlert as AlertIcon,
  Clock as HistoryIcon,
  Copy as CopyIcon,
  Eye as RevealIcon,
  EyeOff as HideIcon,
  FolderDown as DropIcon,
  Minus as MinusIcon,
  Pencil as RenameIcon,
  RefreshCw as RenewIcon,
  Settings2 as SettingsIcon,
  SquarePen as NewChatIcon,
  Trash2 as DeleteIcon,
  X as CloseIcon,
} from "lucide-react";

/** The bird of the app's icon, in the colours of the theme. */
export function PerchMark({ size }: { size: number }) {
  return (
    <svg width={size} height={size} viewBox="212 268 600 600" fill="none" aria-hidden="true">
      <path
        d="M222 700Q512 722 802 700"
        strokeWidth="22"
        strokeLinecap="round"
        className="perch-mark-branch"
      />
      <path
        d="M250 812C300 700 318 640 322 560 328 420 412 318 546 318c76 0 130 38 148 98l82 36-78 34c2 120-70 218-198 218-80 0-140 12-182 66Z"
        className="perch-mark-body"
      />
      <path
        d="M390 512c2-32 56-40 72-6 20 54 60 94 112 120-104 42-182-10-184-114Z"
        className="perch-mark-wing"
      />
      <circle cx="612" cy="416" r="24" className="perch-mark-eye" />
    </svg>
  );
}
