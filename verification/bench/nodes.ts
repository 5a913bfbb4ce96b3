import { execFileSync } from 'node:child_process'
import { installNode } from '../../test/support/node-binary.mjs'

/** A Node that runs services. */
export interface MeasuredNode {
  /** As it names itself, such as `24.21.0`. */
  readonly version: string
  readonly path: string
}

/** The Nodes of these major versions, installed where they are missing; `undefined`: the one that runs this. */
export function nodesOf(majors: readonly number[] | undefined): readonly MeasuredNode[] {
  if (majors === undefined) return [{ version: process.versions.node, path: process.execPath }]
  return majors.map((major) => {
    if (Number.parseInt(process.versions.node, 10) === major) {
      return { version: process.versions.node, path: process.execPath }
    }
    const path = installNode(major)
    if (path === undefined) throw new Error(`Node ${major} could not be installed.`)
    return { version: execFileSync(path, ['--version']).toString().trim().slice(1), path }
  })
}
