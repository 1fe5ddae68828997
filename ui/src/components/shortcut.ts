const onMac = navigator.userAgent.includes("Mac");

/** "N" → "⌘N" on macOS, "Ctrl+N" elsewhere. */
export function shortcut(key: string): string {
  return onMac ? `⌘${key}` : `Ctrl+${key}`;
}

/** Whether the event holds the platform's command key and no other modifier. */
export function isCommand(event: KeyboardEvent): boolean {
  const command = onMac ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  return command && !event.altKey && !event.shiftKey;
}
