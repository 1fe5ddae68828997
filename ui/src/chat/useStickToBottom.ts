import { type RefObject, useCallback, useEffect, useRef, useState } from "react";

/** How near to its end, in px, a list counts as being there. */
const NEAR = 24;

type Sticky = {
  viewport: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  /** Whether the list follows its end. */
  stuck: boolean;
  jump: () => void;
};

/**
 * Keeps a growing list at its end until the person scrolls up.
 *
 * A change of `length` (a message was sent) leads back to the end.
 */
export function useStickToBottom(length: number): Sticky {
  const viewport = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const [stuck, setStuck] = useState(true);
  const follows = useRef(true);

  const follow = useCallback((value: boolean) => {
    follows.current = value;
    setStuck(value);
  }, []);
  const jump = useCallback(() => {
    follow(true);
    const view = viewport.current;
    if (view) view.scrollTop = view.scrollHeight;
  }, [follow]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `length` is the signal to go to the end.
  useEffect(jump, [jump, length]);

  useEffect(() => {
    const view = viewport.current;
    const inside = content.current;
    if (!view || !inside) return;
    let before = view.scrollTop;
    const onScroll = () => {
      const left = view.scrollHeight - view.clientHeight - view.scrollTop;
      if (view.scrollTop < before && left > 1) follow(false);
      else if (left < NEAR) follow(true);
      before = view.scrollTop;
    };
    const sized = new ResizeObserver(() => {
      if (follows.current) view.scrollTop = view.scrollHeight;
      // Content that became shorter moves the view without the person's doing.
      before = view.scrollTop;
    });
    view.addEventListener("scroll", onScroll, { passive: true });
    sized.observe(inside);
    sized.observe(view);
    return () => {
      view.removeEventListener("scroll", onScroll);
      sized.disconnect();
    };
  }, [follow]);

  return { viewport, content, stuck, jump };
}
