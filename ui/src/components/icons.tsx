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

/** Perch's mark: a kingfisher on its branch. */
export function PerchMark({ size = 56 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 64 64" fill="none" aria-hidden="true" className="perch-mark">
      <path
        d="M50 22.5 61 19c-2.4 4-6.2 6.4-10.4 7.2A19 19 0 0 1 33 45.5L22 55l1.6-11.2C15.6 40 13.9 31 18.2 23.6 22.6 16 33 9.600 42.400 12.600c4.500 1.400 7.400 5.300 7.600 9.900Z"
        className="perch-mark-body"
      />
      <path
        d="M33 45.500c-5.500 0-9.500-4.500-8.800-10.200 5.300 3.600 13.200 3.300 19.600-1.300A19 19 0 0 1 33 45.500Z"
        className="perch-mark-breast"
      />
      <circle cx="42" cy="20.500" r="2.200" className="perch-mark-eye" />
      <path d="M6 54.500h52" strokeWidth="3" strokeLinecap="round" className="perch-mark-branch" />
    </svg>
  );
}
