/** The bearer token: fixed, or read regularly from a file, because such tokens are rotated while a process runs. */
import type { ClientCredential, CredentialSource } from '#client/credentials/credential-source.ts';
import type { Clock } from '#lib/clock.ts';

interface TokenSourceOptions {
  readonly token?: string | undefined;
  readonly tokenFile?: string | undefined;
  readonly clock: Clock;
  readonly readFile: (path: string) => Promise<string>;
}

const REREAD_MS = 60_000;

export class TokenSource implements CredentialSource {
  readonly #options: TokenSourceOptions;
  #read: { readonly token: string; readonly atMs: number } | undefined;

  constructor(options: TokenSourceOptions) {
    this.#options = options;
  }

  /** Returns the token, or undefined if there is none. Keeps using the last token if the file cannot be read. */
  async token(): Promise<string | undefined> {
    const { token, tokenFile, clock, readFile } = this.#options;
    if (tokenFile === undefined) return token;
    const last = this.#read;
    if (last !== undefined && clock.now() - last.atMs < REREAD_MS) return last.token;
    try {
      const text = (await readFile(tokenFile)).trim();
      this.#read = { token: text, atMs: clock.now() };
      return text;
    } catch (cause) {
      if (last !== undefined) return last.token;
      if (token !== undefined) return token;
      throw new Error(`Cannot read the token file ${tokenFile}: ${(cause as Error).message}`, { cause });
    }
  }

  async current(): Promise<ClientCredential> {
    return { token: await this.token() };
  }

  /** Discards a token that the server has refused. The next request reads the file again. */
  discard(): void {
    this.#read = undefined;
  }
}
