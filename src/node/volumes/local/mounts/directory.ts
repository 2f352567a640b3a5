/**
 * An open directory and operations on its entries. Names are resolved below the open directory itself, one at a time
 * and never through symbolic links, so that no other process can redirect us between a check and its use. (Node has no openat;
 * paths below /proc/self/fd have the same effect.) Await every call before the directory is disposed of.
 */
import { constants } from 'node:fs';
import { link, mkdir, open, readdir, rename, rmdir, unlink, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { invariant } from '#lib/invariant.ts';

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
const MAX_TREE_DEPTH = 32;

/** Reports whether the text is a single file name, not a path. */
export function isFileName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && name.length <= 255 && !/[/\0]/.test(name);
}

export function isErrorWithCode(error: unknown, ...codes: string[]): error is NodeJS.ErrnoException {
  return error instanceof Error && codes.includes((error as NodeJS.ErrnoException).code ?? '');
}

export class Directory implements AsyncDisposable {
  /** The path at the time of opening, for messages and for other programs. */
  readonly path: string;
  readonly #handle: FileHandle;
  #isOpen = true;

  private constructor(path: string, handle: FileHandle) {
    this.path = path;
    this.#handle = handle;
  }

  /**
   * Opens a path and follows links in it: only for paths of an administrator. Returns undefined if it does not exist.
   */
  static async open(path: string): Promise<Directory | undefined> {
    const handle = await undefinedIfMissing(open(path, O_RDONLY | O_DIRECTORY));
    return handle && new Directory(path, handle);
  }

  /** Opens a child directory. Returns undefined if it does not exist. A link is an error (ENOTDIR). */
  async child(name: string): Promise<Directory | undefined> {
    const handle = await this.#withRealPath(open(this.#below(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    return handle && new Directory(join(this.path, name), handle);
  }

  /** Opens a child directory, creating it with this mode if it does not exist. */
  async makeChild(name: string, mode: number): Promise<Directory> {
    const isCreated = await mkdir(this.#below(name), { mode }).then(
      () => true,
      (error: unknown) => {
        if (isErrorWithCode(error, 'EEXIST')) return false;
        throw error;
      },
    );
    const child = await this.child(name);
    if (child === undefined)
      throw new Error(`Cannot use directory "${join(this.path, name)}": it was removed meanwhile`);
    // mkdir applies the umask.
    if (isCreated) await child.#handle.chmod(mode);
    return child;
  }

  /** Opens a file. Returns undefined if it does not exist, without O_CREAT. A link is an error (ELOOP). */
  open(name: string, flags: number, mode = 0o600): Promise<FileHandle | undefined> {
    // Without O_NONBLOCK, opening a FIFO would block forever.
    return this.#withRealPath(open(this.#below(name), flags | O_NOFOLLOW | O_NONBLOCK, mode));
  }

  async rename(from: string, to: string): Promise<void> {
    await rename(this.#below(from), this.#below(to));
  }

  /** Creates a second name for the file. Returns false, without a change, if the name already exists. */
  async link(from: string, to: string): Promise<boolean> {
    try {
      await link(this.#below(from), this.#below(to));
      return true;
    } catch (error) {
      if (isErrorWithCode(error, 'EEXIST')) return false;
      throw error;
    }
  }

  /** Does nothing if there is no such file. */
  async unlink(name: string): Promise<void> {
    await this.#withRealPath(unlink(this.#below(name)));
  }

  /** Makes changes of names durable. */
  async sync(): Promise<void> {
    invariant(this.#isOpen, 'a directory is used only while it is open');
    await this.#handle.sync();
  }

  names(): Promise<string[]> {
    invariant(this.#isOpen, 'a directory is used only while it is open');
    return readdir(`/proc/self/fd/${this.#handle.fd}`);
  }

  /** Removes all files; a subdirectory is an error. */
  async empty(): Promise<void> {
    for (const file of await this.names()) await this.unlink(file);
  }

  /** Removes a directory and its files; a subdirectory is an error. Does nothing if there is no such directory. */
  async removeChild(name: string): Promise<void> {
    {
      await using child = await this.child(name);
      if (child === undefined) return;
      await child.empty();
    }
    await this.#withRealPath(rmdir(this.#below(name)));
  }

  /** Removes a directory recursively without following links. Does nothing if there is no such directory. */
  async removeTree(name: string, depth = MAX_TREE_DEPTH): Promise<void> {
    {
      await using child = await this.child(name);
      if (child === undefined) return;
      if (depth === 0) throw new Error(`Cannot remove "${child.path}": it is nested too deeply`);
      for (const entry of await child.names()) {
        try {
          await child.unlink(entry);
        } catch (error) {
          if (!isErrorWithCode(error, 'EISDIR')) throw error;
          await child.removeTree(entry, depth - 1);
        }
      }
    }
    await this.#withRealPath(rmdir(this.#below(name)));
  }

  /** Removes a directory if it is empty. Does nothing if there is no such directory or if it is not empty. */
  async removeEmptyChild(name: string): Promise<void> {
    try {
      await this.#withRealPath(rmdir(this.#below(name)));
    } catch (error) {
      if (!isErrorWithCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOpen = false;
    await this.#handle.close();
  }

  /**
   * Resolves to undefined if the entry does not exist. Replaces the path below /proc in messages of errors with the
   * real one.
   */
  async #withRealPath<T>(promise: Promise<T>): Promise<T | undefined> {
    return undefinedIfMissing(promise).catch((error: unknown) => {
      if (error instanceof Error) error.message = error.message.replace(`/proc/self/fd/${this.#handle.fd}`, this.path);
      throw error;
    });
  }

  #below(name: string): string {
    // The number of a closed descriptor may refer to another directory by now.
    invariant(this.#isOpen, 'a directory is used only while it is open');
    invariant(isFileName(name), `a name in a directory is not a path: ${JSON.stringify(name)}`);
    return `/proc/self/fd/${this.#handle.fd}/${name}`;
  }
}

async function undefinedIfMissing<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise;
  } catch (error) {
    if (isErrorWithCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/**
 * Opens a directory below another, step by step. Returns undefined if it does not exist, and 'link' if a step is a
 * link.
 */
export async function openBelow(root: string, names: readonly string[]): Promise<Directory | undefined | 'link'> {
  let current = await Directory.open(root);
  for (const name of names) {
    if (current === undefined) return undefined;
    await using parent = current;
    try {
      current = await parent.child(name);
    } catch (error) {
      if (isErrorWithCode(error, 'ENOTDIR', 'ELOOP')) return 'link';
      throw error;
    }
  }
  return current;
}
