/** How many steps one turn of the event loop takes: Node runs the microtasks between any two immediates. */
const STEPS_A_TURN = 256

/** Takes step after step, each with all that follows from it in microtasks, until there is none: `step` says whether. */
export function takeSteps(step: () => boolean, betweenTurns: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    let goesOn = true
    let failure: { readonly error: unknown } | undefined

    function takeOne(): void {
      if (!goesOn) return
      try {
        goesOn = step()
      } catch (error) {
        failure = { error }
        goesOn = false
      }
    }

    function endTurn(): void {
      betweenTurns()
      if (goesOn) startTurn()
      else if (failure === undefined) resolve()
      else reject(failure.error)
    }

    function startTurn(): void {
      for (let i = 0; i < STEPS_A_TURN; i++) setImmediate(takeOne)
      setImmediate(endTurn)
    }

    startTurn()
  })
}
