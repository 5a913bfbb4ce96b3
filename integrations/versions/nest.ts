import 'reflect-metadata'
import * as common from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { MessagePattern } from '@nestjs/microservices'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import * as entry from 'once-per-key/nest'
import * as rxjs from 'rxjs'
import type { NamedNest } from '../../test/versions/nest.js'
import * as nest10 from '../nest/10/nest.js'
import * as nest11 from '../nest/11/nest.js'

export type { NamedNest }

/** The types of each copy are its own; the suites call what all have. */
const nest12 = { common, NestFactory, MessagePattern, FastifyAdapter, entry, rxjs }
const named = (name: string, nest: unknown): NamedNest => ({ name, ...(nest as Omit<NamedNest, 'name'>) })

/** The older ones each in a folder of its own, where the packed package finds it by its name. */
export const NESTS: readonly NamedNest[] = [
  named('Nest 10', nest10),
  named('Nest 11', nest11),
  named('Nest 12', nest12),
]
