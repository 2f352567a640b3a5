/**
 * Services that run in this process, by namespace and name: a webhook or an aggregated API that refers to one is called
 * as a function, with the same messages as over HTTPS.
 */
import type { ApiHandler } from '#engine/request/request.ts';

export interface LocalService {
  /**
   * Answers an AdmissionReview that is posted to this path (with its query). The values are copies that it may modify.
   */
  review?(path: string, review: unknown, options: { signal: AbortSignal }): Promise<unknown>;
  /** Serves an aggregated API. */
  readonly api?: ApiHandler;
}

export class LocalServices {
  readonly #services = new Map<string, LocalService>();
  readonly #metrics = new Set<() => string>();

  /** Returns a function that unregisters the service. */
  register(namespace: string, name: string, service: LocalService): () => void {
    const key = `${namespace}/${name}`;
    if (this.#services.has(key)) throw new Error(`Cannot register service ${key}: it is already registered`);
    this.#services.set(key, service);
    return () => void this.#services.delete(key);
  }

  /** Adds metrics in Prometheus' text format. Returns a function that removes them. */
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
