/**
 * The position of a walk through an object. One growing stack serves a whole walk, so that a step costs two stores and
 * a path is built only on demand.
 */

export class Trail {
  readonly #keys: (string | number)[] = [];
  #depth = 0;

  enter(key: string | number): void {
    this.#keys[this.#depth++] = key;
  }

  leave(): void {
    this.#depth--;
  }

  /** Returns `spec.list[0].bar`; '' at the root. */
  path(): string {
    let path = '';
    for (let i = 0; i < this.#depth; i++) {
      const key = this.#keys[i];
      if (typeof key === 'number') path += `[${key}]`;
      else path += path === '' ? key : `.${key}`;
    }
    return path;
  }
}
