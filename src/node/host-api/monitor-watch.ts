/**
 * Asks the monitors of guests whether they answer, for `monitorResponse` of the statistics. A guest whose hypervisor hangs
 * is told from one that is idle only by a question, so each call for statistics asks; at most one question is under way for
 * each guest, and its answer holds for a moment, however often and by however many it is asked for.
 */
import type { Clock } from '#lib/clock.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';

/** A QEMU on a busy machine answers in milliseconds; one that needs longer is of no use to whoever waits. */
export const ANSWER_MS = 3000;
export const FRESH_MS = 2000;

interface Question {
  readonly answer: Promise<boolean>;
  /** By Clock.elapsed; undefined while nobody has answered. */
  answeredAtMs?: number;
}

export class MonitorWatch {
  readonly #hypervisor: Pick<Hypervisor, 'ping'>;
  readonly #clock: Clock;
  readonly #questions = new Map<string, Question>();

  constructor({ hypervisor, clock }: { readonly hypervisor: Pick<Hypervisor, 'ping'>; readonly clock: Clock }) {
    this.#hypervisor = hypervisor;
    this.#clock = clock;
  }

  /** Resolves to the ids of the guests whose monitor answers, after ANSWER_MS at the latest. Guests that are not named are forgotten. */
  async answering(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const asked = new Set(ids);
    for (const id of this.#questions.keys()) if (!asked.has(id)) this.#questions.delete(id);
    const answers = await Promise.all(ids.map(async (id) => ((await this.#ask(id)) ? [id] : [])));
    return new Set(answers.flat());
  }

  #ask(id: string): Promise<boolean> {
    const known = this.#questions.get(id);
    const isFresh = known?.answeredAtMs === undefined || this.#clock.elapsed() - known.answeredAtMs < FRESH_MS;
    if (known !== undefined && isFresh) return known.answer;
    const answer = this.#hypervisor.ping(id, { timeoutMs: ANSWER_MS }).then(
      () => true,
      () => false,
    );
    const question: Question = { answer };
    this.#questions.set(id, question);
    void answer.then(() => (question.answeredAtMs = this.#clock.elapsed()));
    return answer;
  }
}
