import { Page } from "../components/Page";
import type { ConversationSummary } from "../ipc/bindings";
import { useAppState } from "../state/app-state";
import { dayHeading } from "../text/format";
import { HistoryRow } from "./HistoryRow";
import "./history.css";

type Props = { current: string | null; onOpen: (id: string) => void; onBack: () => void };

/** All conversations, newest first, under the days they were last touched. */
export function HistoryPage({ current, onOpen, onBack }: Props) {
  const { conversations } = useAppState();
  const now = Date.now();
  return (
    <Page title="History" onBack={onBack}>
      {conversations.length === 0 && <p className="history-none">No conversations yet</p>}
      {byDay(conversations, now).map(([heading, day]) => (
        <section key={heading} className="history-day" aria-label={heading}>
          <h2 className="group-title">{heading}</h2>
          <ul>
            {day.map((conversation) => (
              <HistoryRow
                key={conversation.id}
                conversation={conversation}
                current={conversation.id === current}
                now={now}
                onOpen={() => onOpen(conversation.id)}
              />
            ))}
          </ul>
        </section>
      ))}
    </Page>
  );
}

function byDay(conversations: ConversationSummary[], now: number): [string, ConversationSummary[]][] {
  const newestFirst = conversations.toSorted((a, b) => b.updatedAt - a.updatedAt);
  const days = new Map<string, ConversationSummary[]>();
  for (const conversation of newestFirst) {
    const heading = dayHeading(conversation.updatedAt, now);
    days.set(heading, [...(days.get(heading) ?? []), conversation]);
  }
  return [...days];
}
