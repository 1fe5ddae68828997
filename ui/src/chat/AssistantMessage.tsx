import { memo, useMemo } from "react";
import { CopyButton } from "../components/CopyButton";
import type { Message } from "../ipc/bindings";
import { Markdown } from "../markdown/Markdown";
import { useReplies } from "../state/replies";
import { useStore } from "../state/store";
import { speed } from "../text/format";
import { splitThinking } from "../text/thinking";
import { ReplyEnd } from "./ReplyEnd";
import { ReplyPhase } from "./ReplyPhase";
import { Thinking } from "./Thinking";

type Props = { message: Message; last: boolean; onRetry: () => void };

/** A reply, followed while it is being written. */
export const AssistantMessage = memo(
  function AssistantMessage({ message, last, onRetry }: Props) {
    const replies = useReplies();
    const progress = useStore(useMemo(() => replies.of(message), [replies, message]));
    const { message: current, phase, thinkingFrom, thinkingTo } = progress;
    const { thinking, closed, answer } = splitThinking(current.text);
    const streaming = phase.kind !== "finished";

    return (
      <article className="message assistant-message" aria-label="Reply" aria-busy={streaming}>
        {thinking !== null && (
          <Thinking
            text={thinking}
            streaming={streaming && !closed}
            milliseconds={thinkingFrom !== null && thinkingTo !== null ? thinkingTo - thinkingFrom : null}
          />
        )}
        {answer !== "" && (
          <div className={streaming ? "answer answer-growing" : "answer"}>
            <Markdown text={answer} streaming={streaming} />
          </div>
        )}
        {streaming ? (
          <ReplyPhase phase={phase} />
        ) : (
          <>
            <ReplyEnd message={current} onRetry={last ? onRetry : null} />
            <footer className={last ? "message-foot message-foot-last" : "message-foot"}>
              {answer !== "" && <CopyButton text={answer} label="Copy message" />}
              {current.stats && (
                <span className="message-stats" title={current.model ?? undefined}>
                  {current.stats.completionTokens} tokens · {speed(current.stats.tokensPerSecond)}
                </span>
              )}
            </footer>
          </>
        )}
      </article>
    );
  },
  // `onRetry` is made anew with each list and says the same as long as the message does.
  (before, after) => before.message === after.message && before.last === after.last,
);
