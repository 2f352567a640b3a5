/**
 * Binds type parameters. One unifier serves one check: bindings from an early part of an expression apply to the later
 * parts.
 *
 * The rules are those of cel-go: dyn is assignable to every type, null to every nullable type, and a parameter is bound
 * to the first type that it meets and becomes more general (towards dyn) when necessary.
 */
import type { CelType, ParamType } from '#cel/type.ts';
import { DYN, param } from '#cel/type.ts';
import type { CheckBudget } from '#cel/limits/check-budget.ts';
import { isDyn, isDynOrError, isNullable, partsOf, haveSameHead, withParts } from '#cel/check/type-relations.ts';

export class Unifier {
  readonly #bindings = new Map<string, CelType>();
  /** The bindings to restore if an attempt fails. */
  #trail: { readonly name: string; readonly before: CelType | undefined }[] = [];
  readonly #checkBudget: CheckBudget;
  #paramCount = 0;

  constructor(checkBudget: CheckBudget) {
    this.#checkBudget = checkBudget;
  }

  /** Returns a new type parameter, for a type that is not known yet. */
  newParam(): ParamType {
    return param(`_var${this.#paramCount++}`);
  }

  /** Binds parameters if it returns true, and changes nothing otherwise. */
  isAssignable(from: CelType, to: CelType): boolean {
    return this.#attempt(() => this.#assign(from, to));
  }

  areAssignable(from: readonly CelType[], to: readonly CelType[]): boolean {
    return from.length === to.length && this.#attempt(() => from.every((type, i) => this.#assign(type, to[i]!)));
  }

  /** Replaces bound parameters by their types. Unbound parameters stay or become dyn. */
  resolve(type: CelType, open: 'keep' | 'dyn' = 'keep'): CelType {
    this.#step();
    if (type.kind === 'param') {
      const bound = this.#bindings.get(type.name);
      if (bound) return this.resolve(bound, open);
      return open === 'dyn' ? DYN : type;
    }
    return withParts(type, (part) => this.resolve(part, open));
  }

  /** Replaces the parameters of an overload by new ones. */
  instantiate(type: CelType, fresh: Map<string, CelType>): CelType {
    this.#step();
    if (type.kind !== 'param') return withParts(type, (part) => this.instantiate(part, fresh));
    const known = fresh.get(type.name) ?? this.newParam();
    fresh.set(type.name, known);
    return known;
  }

  /** Returns the more general of two types that are assignable to each other. */
  mostGeneral(a: CelType, b: CelType): CelType {
    return this.#isAtLeastAsGeneral(a, b) ? a : b;
  }

  isSameType(a: CelType, b: CelType): boolean {
    this.#step();
    if (a === b) return true;
    if (!haveSameHead(a, b)) return false;
    const other = partsOf(b);
    return partsOf(a).every((part, i) => this.isSameType(part, other[i]!));
  }

  #attempt(work: () => boolean): boolean {
    this.#trail = [];
    if (work()) return true;
    for (const { name, before } of this.#trail.toReversed()) {
      if (before) this.#bindings.set(name, before);
      else this.#bindings.delete(name);
    }
    return false;
  }

  #bind(name: string, type: CelType): void {
    this.#trail.push({ name, before: this.#bindings.get(name) });
    this.#bindings.set(name, type);
  }

  #assign(from: CelType, to: CelType): boolean {
    this.#step();
    if (to.kind === 'param') {
      const answer = this.#tryBind(from, to);
      if (answer !== 'occurs') return answer;
    }
    if (from.kind === 'param') return this.#tryBind(to, from) === true;
    if (isDynOrError(from) || isDynOrError(to)) return true;
    if (isNull(from)) return isNullable(to);
    if (isNull(to)) return isNullable(from);
    if (!haveSameHead(from, to)) return false;
    // All types have the same type here: type(x) == int compares names at run time.
    if (from.kind === 'type') return true;
    const parts = partsOf(to);
    return partsOf(from).every((part, i) => this.#assign(part, parts[i]!));
  }

  /**
   * Reports whether the parameter can be bound to the type. Returns `occurs` if it is unbound and part of that type.
   */
  #tryBind(type: CelType, parameter: ParamType): boolean | 'occurs' {
    if (this.isSameType(type, parameter)) return true;
    const bound = this.#bindings.get(parameter.name);
    if (!bound) {
      if (this.#occursIn(type, parameter)) return 'occurs';
      this.#bind(parameter.name, type);
      return true;
    }
    if (this.isSameType(type, bound)) return true;
    if (!this.#assign(type, bound)) return false;
    const general = this.mostGeneral(type, bound);
    if (!this.#occursIn(general, parameter)) this.#bind(parameter.name, general);
    return true;
  }

  #occursIn(type: CelType, parameter: ParamType): boolean {
    this.#step();
    if (type.kind === 'param') {
      if (type.name === parameter.name) return true;
      const bound = this.#bindings.get(type.name);
      return bound !== undefined && this.#occursIn(bound, parameter);
    }
    return partsOf(type).some((part) => this.#occursIn(part, parameter));
  }

  #isAtLeastAsGeneral(a: CelType, b: CelType): boolean {
    this.#step();
    if (isDyn(a) || a.kind === 'param') return true;
    if (isDyn(b) || b.kind === 'param') return false;
    if (!haveSameHead(a, b)) return false;
    if (a.kind === 'type') return true;
    const parts = partsOf(b);
    return partsOf(a).every((part, i) => this.#isAtLeastAsGeneral(part, parts[i]!));
  }

  #step(): void {
    this.#checkBudget.step();
  }
}

function isNull(type: CelType): boolean {
  return type.kind === 'primitive' && type.name === 'null_type';
}
