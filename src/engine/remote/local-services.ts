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

  /** Returns a function that unregisters the service. */
  register(namespace: string, name: string, service: LocalService): () => void {
    const key = `${namespace}/${name}`;
    if (this.#services.has(key)) throw new Error(`Cannot register service ${key}: it is already registered`);
    this.#services.set(key, service);
    return () => void this.#services.delete(key);
  }

  find(namespace: string, name: string): LocalService | undefined {
    return this.#services.get(`${namespace}/${name}`);
  }
}
