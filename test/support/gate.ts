/** A door that a test opens when it wants to: instead of a sleep. */
export interface Gate<Value = void> {
  readonly opened: Promise<Value>
  open(value: Value): void
}

export function gate<Value = void>(): Gate<Value> {
  let open!: (value: Value) => void
  const opened = new Promise<Value>((resolve) => {
    open = resolve
  })
  return { opened, open }
}
