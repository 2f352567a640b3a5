/**
 * Services that live in this process, by namespace and name: a webhook or an aggregated API whose object refers to one
 * of them is called as a function, with the very same messages as over HTTPS.
 */
import type { ApiHandler } from '#engine/request.ts';

export interface LocalService {
  /** Answers an AdmissionReview that is posted to this path (with its query). The values crossed as JSON: they are its own. */
  review?(path: string, review: unknown, options: { signal: AbortSignal }): Promise<unknown>;
  /** Serves an aggregated API. */
  readonly api?: ApiHandler;
}

export class LocalServices {
  readonly #services = new Map<string, LocalService>();
  readonly #metrics = new Set<() => string>();

  /** The result takes it away again. */
  register(namespace: string, name: string, service: LocalService): () => void {
    const key = `${namespace}/${name}`;
    if (this.#services.has(key)) throw new Error(`Cannot register service ${key}: there is one already`);
    this.#services.set(key, service);
    return () => void this.#services.delete(key);
  }

  /** What they count, in Prometheus' text format; the result takes it away again. */
  addMetrics(text: () => string): () => void {
    this.#metrics.add(text);
    return () => void this.#metrics.delete(text);
  }

  metricsText(): string {
    return [...this.#metrics].map((text) => text()).join('');
  }

  find(namespace: string, name: string): LocalService | undefined {
    return this.#services.get(`${namespace}/${name}`);
  }
}
