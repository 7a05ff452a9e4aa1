import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A stored plant. Rows are only ever inserted: a plant is stored once, for good. */
@Entity('plants')
export class PlantEntity {
  /** An int64, as decimal digits: TypeORM reads bigint as text, a JavaScript number would round it. */
  @PrimaryColumn('bigint', { primaryKeyConstraintName: 'plants_pkey' })
  id: string;

  @Column('text')
  name: string;

  @Column('text', { nullable: true })
  tag: string | null;

  @Column('timestamptz', { name: 'created_at', default: () => 'now()' })
  createdAt: Date;
}
