/** The address of a link that may be opened, or null: only http and https ever leave the window. */
export function safeLink(href: string | undefined): string | null {
  if (!href || !URL.canParse(href)) return null;
  const { protocol, href: normal } = new URL(href);
  return protocol === "http:" || protocol === "https:" ? normal : null;
}
