import type { MeasuredNode } from './nodes.js'
import { type Candidate, type Figures, type Ground, inTurn, measureInRounds } from './rounds.js'
import { startedOnDemand } from './services.js'

/** What is to be measured, before its service runs. */
export type Plan = Omit<Candidate, 'service'> & { readonly variant: string }

/**
 * Everything in turn, on each Node. In each round by processes of its own: two processes of one program differ, by how the
 * engine compiled it, as much as two variants do.
 */
export async function measureAfresh(
  title: string,
  plans: readonly Plan[],
  nodes: readonly MeasuredNode[],
  ground: Ground,
): Promise<ReadonlyMap<MeasuredNode, ReadonlyMap<string, Figures>>> {
  const figuresOf = new Map(nodes.map((node) => [node, new Map<string, Figures>()]))
  let longestMs = 0
  for (let round = 0; round < ground.rounds; round++) {
    const startedAt = performance.now()
    if (round > 0 && ground.until !== undefined && startedAt + longestMs > ground.until) break
    for (const [node, figures] of figuresOf) {
      const services = startedOnDemand(ground.servers, node.path)
      try {
        const candidates = await Promise.all(
          inTurn(plans, round).map(async ({ variant, ...plan }) => ({ ...plan, service: await services.of(variant) })),
        )
        const what = `${title}, Node ${node.version}, ${round + 1} of ${ground.rounds}`
        await measureInRounds(what, candidates, { ...ground, rounds: 1 }, figures)
      } finally {
        await services.end()
      }
    }
    longestMs = Math.max(longestMs, performance.now() - startedAt)
  }
  return figuresOf
}
