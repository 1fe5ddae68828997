import type { ComponentProps, ComponentType } from "react";

type Props = ComponentProps<"button"> & {
  icon: ComponentType<{ size?: number; "aria-hidden"?: boolean }>;
  label: string;
  /** Shown after the label in the tooltip, such as "⌘N". */
  shortcut?: string;
};

export function IconButton({ icon: Icon, label, shortcut, className = "", ...rest }: Props) {
  return (
    <button
      type="button"
      className={`icon-button ${className}`}
      aria-label={label}
      title={shortcut ? `${label} (${shortcut})` : label}
      {...rest}
    >
      <Icon size={16} aria-hidden />
    </button>
  );
}
