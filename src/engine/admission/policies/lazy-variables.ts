/** The variables of a policy as a map, each computed on first use and then cached. */
import type { Program } from '#cel/compile.ts';
import type { Activation } from '#cel/environment.ts';
import type { Budget } from '#cel/limits/budget.ts';
import { CelFault, CelMap, type CelValue } from '#cel/value.ts';

export class LazyVariables extends CelMap {
  readonly #programs: ReadonlyMap<string, Program>;
  #cached: Map<string, CelValue | CelFault> | undefined;
  #activation: Activation = () => undefined;
  #budget: Budget | undefined;

  constructor(programs: ReadonlyMap<string, Program>) {
    super();
    this.#programs = programs;
  }

  /** Must be called before each evaluation: the cost of a variable counts for the first expression that uses it. */
  use(activation: Activation, budget: Budget): void {
    this.#activation = activation;
    this.#budget = budget;
  }

  override get size(): number {
    return this.#programs.size;
  }

  override get(key: CelValue): CelValue | CelFault | undefined {
    if (typeof key !== 'string') return undefined;
    const known = this.#cached?.get(key);
    if (known !== undefined) return known;
    const program = this.#programs.get(key);
    if (program === undefined) return undefined;
    const value = program.evaluate(this.#activation, this.#budget!);
    const kept =
      value instanceof CelFault
        ? new CelFault(`composited variable "${key}" fails to evaluate: ${value.message}`)
        : value;
    (this.#cached ??= new Map()).set(key, kept);
    return kept;
  }

  override has(key: CelValue): boolean {
    return typeof key === 'string' && this.#programs.has(key);
  }

  override keys(): Iterable<CelValue> {
    return this.#programs.keys();
  }
}
