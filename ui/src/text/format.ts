const LOCALE = "en-GB";
const whole = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 1 });

export function count(value: number): string {
  return whole.format(value);
}

/** Size of files: decimal units, as the Finder shows them. */
export function diskSize(bytes: number): string {
  return scaled(bytes, 1000);
}

/** Size in memory: binary units under their everyday names, as "About This Mac" shows them. */
export function memorySize(bytes: number): string {
  return scaled(bytes, 1024);
}

function scaled(bytes: number, base: number): string {
  const units = ["bytes", "KB", "MB", "GB", "TB"];
  let value = bytes;
  let unit = 0;
  while (value >= base && unit < units.length - 1) {
    value /= base;
    unit++;
  }
  return `${value < 10 ? tenth.format(value) : whole.format(value)} ${units[unit]}`;
}

/** 596,049,920 → "596M"; 1.7e9 → "1.7B". */
export function parameterCount(parameters: number): string {
  if (parameters >= 1e9) return `${tenth.format(parameters / 1e9)}B`;
  if (parameters >= 1e6) return `${whole.format(parameters / 1e6)}M`;
  if (parameters >= 1e3) return `${whole.format(parameters / 1e3)}K`;
  return whole.format(parameters);
}

/** 4.5 → "4.5"; 16 → "16". */
export function bits(perWeight: number): string {
  return tenth.format(perWeight);
}

/** 4096 → "4k"; 131072 → "128k"; 40960 → "40k". */
export function contextSize(tokens: number): string {
  if (tokens < 1024) return whole.format(tokens);
  return `${tenth.format(tokens / 1024)}k`;
}

export function speed(tokensPerSecond: number): string {
  return `${tokensPerSecond < 10 ? tenth.format(tokensPerSecond) : whole.format(tokensPerSecond)} tok/s`;
}

export function percent(fraction: number): string {
  return `${Math.round(Math.min(1, Math.max(0, fraction)) * 100)}%`;
}

/** 4200 → "4 seconds". */
export function duration(milliseconds: number): string {
  const seconds = Math.max(1, Math.round(milliseconds / 1000));
  if (seconds < 60) return seconds === 1 ? "1 second" : `${seconds} seconds`;
  const minutes = Math.round(seconds / 60);
  return minutes === 1 ? "1 minute" : `${minutes} minutes`;
}

/** An error's message as a sentence; a file's name at its beginning stays as it is. */
export function sentence(message: string): string {
  const begun = message.replace(/^[a-z]+(?=[ ,])/, (word) => word.charAt(0).toUpperCase() + word.slice(1));
  return /[.!?…]$/.test(begun) ? begun : `${begun}.`;
}

/** The heading under which a day stands in the history. */
export function dayHeading(time: number, now: number): string {
  const day = startOfDay(time);
  const days = Math.round((startOfDay(now) - day) / 86_400_000);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days < 7) return "Previous 7 days";
  return new Intl.DateTimeFormat(LOCALE, { month: "long", year: "numeric" }).format(time);
}

/** "14:05" for today, "3 Nov" for other days. */
export function shortTime(time: number, now: number): string {
  const options: Intl.DateTimeFormatOptions =
    startOfDay(time) === startOfDay(now)
      ? { hour: "2-digit", minute: "2-digit" }
      : { day: "numeric", month: "short" };
  return new Intl.DateTimeFormat(LOCALE, options).format(time);
}

function startOfDay(time: number): number {
  return new Date(time).setHours(0, 0, 0, 0);
}
